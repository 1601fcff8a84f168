// Phase times from CUDA events on the primary GPU's current stream.
#pragma once

#include "training/devices/phase_timer.hpp"

#include <ATen/cuda/CUDAEvent.h>

#include <chrono>
#include <mutex>
#include <vector>

namespace bench::training {

class CudaPhaseTimer final : public PhaseTimer {
 public:
  explicit CudaPhaseTimer(std::vector<c10::Device> devices);

  void begin_step() override;
  StepTimes end_step() override;
  void enter(Phase phase) override;
  void enter_in_backward(Phase phase) override { enter(phase); }

 private:
  struct Mark {
    Phase phase;
    at::cuda::CUDAEvent event;
  };

  std::vector<c10::Device> devices_;
  std::mutex mutex_;
  std::vector<Mark> marks_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace bench::training
