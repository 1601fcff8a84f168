// calibrate: measures one device and its copies, or, as a distributed job, its collectives.
#include "training/calibrate/measure_all_reduce.hpp"
#include "training/calibrate/measurements.hpp"
#include "training/jobs/job_runner.hpp"

#include <c10/cuda/CUDAGuard.h>
#include <torch/version.h>

#include <optional>

namespace bench::training {
namespace {

// All devices of the job: a single-device case is placed on the first only.
std::vector<at::Device> devices_of(const Case& work) {
  if (work.device != DeviceKind::cuda) return std::vector<at::Device>(work.gpus.size(), at::kCPU);
  std::vector<at::Device> devices;
  for (const int gpu : work.gpus) {
    devices.emplace_back(at::kCUDA, static_cast<at::DeviceIndex>(gpu));
  }
  return devices;
}

}  // namespace

void run_calibration(const Job& job, const Placement& placement, JobContext& context) {
  CalibrationSamples samples;
  samples.torch = TORCH_VERSION;
  WorkerChannel& channel = context.channel();
  const auto heartbeat = [&] { channel.heartbeat(); };
  std::optional<c10::cuda::CUDAGuard> guard;
  if (placement.devices.at(0).is_cuda()) guard.emplace(placement.devices.at(0));
  if (placement.world_size > 1) {
    channel.phase("all-reduce");
    samples.all_reduce = measure_all_reduce(placement, job.quick, heartbeat);
  } else {
    prepare_calibration();
    const CalibrationTarget target{devices_of(job.work), job.quick, heartbeat};
    measure_device_facts(target, samples);
    channel.phase("operators");
    measure_operators(target, samples);
    channel.phase("host");
    measure_host(target, samples);
    channel.phase("copies");
    measure_copies(target, samples);
    measure_peers(target, samples);
    measure_context(target, samples);
  }
  if (placement.rank == 0) write_samples(samples, job.samples_file);
}

}  // namespace bench::training
