#include "training/devices/cuda_phase_timer.hpp"

#include "training/devices/cpu_phase_timer.hpp"

#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

namespace bench::training {

CudaPhaseTimer::CudaPhaseTimer(std::vector<c10::Device> devices) : devices_(std::move(devices)) {}

void CudaPhaseTimer::begin_step() {
  marks_.clear();
  begin_ = std::chrono::steady_clock::now();
}

void CudaPhaseTimer::enter(Phase phase) {
  const std::lock_guard lock(mutex_);
  marks_.push_back({phase, at::cuda::CUDAEvent(cudaEventDefault)});
  marks_.back().event.record(c10::cuda::getCurrentCUDAStream(devices_[0].index()));
}

StepTimes CudaPhaseTimer::end_step() {
  enter(Phase::other);
  for (const auto& device : devices_) {
    const c10::cuda::CUDAGuard guard(device);
    c10::cuda::device_synchronize();
  }
  StepTimes times;
  const auto wall = std::chrono::steady_clock::now() - begin_;
  times.wall_ms = std::chrono::duration<double, std::milli>(wall).count();
  times.device_ms = marks_.front().event.elapsed_time(marks_.back().event);
  for (std::size_t i = 0; i + 1 < marks_.size(); ++i) {
    times.phase_ms[simulator::phase_name(marks_[i].phase)] +=
        marks_[i].event.elapsed_time(marks_[i + 1].event);
  }
  return times;
}

std::unique_ptr<PhaseTimer> make_phase_timer(const std::vector<c10::Device>& devices) {
  if (devices.at(0).is_cuda()) return std::make_unique<CudaPhaseTimer>(devices);
  return std::make_unique<CpuPhaseTimer>();
}

}  // namespace bench::training
