#include "bench/core/communication_sample.hpp"

namespace bench {
namespace {

constexpr const char* kPrefix = "communication.";
constexpr const char* kCompute = "communication.compute";
constexpr const char* kAny = "communication.any";
constexpr const char* kExposed = "communication.exposed";

std::string all_reduce_key(std::size_t index) {
  return std::string(kPrefix) + "all_reduce." + std::to_string(index);
}

}  // namespace

void add_communication(const CommunicationSample& communication, StepSample& sample) {
  auto& times = sample.phase_ms;
  if (communication.compute_ms) times[kCompute] = *communication.compute_ms;
  times[kAny] = communication.communication_ms;
  times[kExposed] = communication.exposed_ms;
  for (std::size_t i = 0; i < communication.all_reduce_ms.size(); ++i) {
    times[all_reduce_key(i)] = communication.all_reduce_ms[i];
  }
}

std::optional<CommunicationSample> communication_of(const StepSample& sample) {
  const auto& times = sample.phase_ms;
  const auto any = times.find(kAny);
  const auto exposed = times.find(kExposed);
  if (any == times.end() || exposed == times.end()) return std::nullopt;
  CommunicationSample result;
  result.communication_ms = any->second;
  result.exposed_ms = exposed->second;
  if (const auto compute = times.find(kCompute); compute != times.end()) {
    result.compute_ms = compute->second;
  }
  for (std::size_t i = 0;; ++i) {
    const auto found = times.find(all_reduce_key(i));
    if (found == times.end()) return result;
    result.all_reduce_ms.push_back(found->second);
  }
}

std::map<std::string, double> phases_of(const StepSample& sample) {
  std::map<std::string, double> phases;
  for (const auto& [name, ms] : sample.phase_ms) {
    if (!name.starts_with(kPrefix)) phases.emplace(name, ms);
  }
  return phases;
}

}  // namespace bench
