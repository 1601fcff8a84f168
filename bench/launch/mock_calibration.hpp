// What a calibration would measure on a GPU of the catalogue, if that GPU were exactly what
// simulator/kernel_time.hpp takes it for: the truth that a fit has to find again.
#pragma once

#include "bench/calibrate/samples.hpp"
#include "bench/core/job.hpp"
#include "simulator/machine.hpp"

#include <cstdint>

namespace bench::mock {

// Every time is that of `gpu` times a factor drawn from `seed` with relative standard deviation
// `noise`; host costs are the simulator's reference times `host_slowdown`.
CalibrationSamples calibration_of(const simulator::GpuSpec& gpu, double host_slowdown, double noise,
                                  std::uint64_t seed);

// The answer to a calibrate job: an A100, and an all-reduce for a job of several GPUs.
CalibrationSamples calibration(const Job& job);

}  // namespace bench::mock
