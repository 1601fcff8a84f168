// `bench worker --job FILE` (hidden): answers every kind of job with exact made-up numbers and
// without LibTorch, so that tests drive the real program, its launcher, simulator, statistics and
// outputs in milliseconds. Selected by --worker; never used unless asked for.
//
// BENCH_MOCK_FAULTS makes it misbehave, as a list KIND@PART[,KIND@PART...]: a job whose case name
// contains PART (every job when PART is empty) meets the fault KIND, one of
//   crash  abort  hang  exit  error  oom  skip   the last rank fails in this way
//   slow                                         the job takes 0.3 s
//   factor  local  seed                          a verify job answers with gradients too large by
//                                                the world size, not reduced, or of another seed
//   rounding                                     a verify job differs by float32 rounding only
#pragma once

#include "bench/core/job.hpp"

#include <string>
#include <vector>

namespace bench {

// The function behind the subcommand; `typed` is what followed "worker".
int worker_command(const std::vector<std::string>& typed);

// The arithmetic of the mock, for tests that compute what must come out.
namespace mock {

inline constexpr double kSingleFixedMs = 4;  // host work of a step
inline constexpr double kMsPerSample = 0.5;  // on one GPU
inline constexpr double kReplicateMs = 3;    // data_parallel: per additional GPU
inline constexpr double kReduceMs = 1;       // distributed: exposed part, more than one GPU
inline constexpr std::uint64_t kParameterBytes = 100ull << 20;
inline constexpr std::uint64_t kActivationBytesPerSample = 8ull << 20;
inline constexpr std::uint64_t kGatheredBytesPerSample = 1ull << 20;

double step_ms(const Case& work);
// Peak of each GPU of the case, by category.
std::vector<DeviceMemory> memory(const Case& work);

}  // namespace mock
}  // namespace bench
