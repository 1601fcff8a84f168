// Phase times from the host's steady clock: exact on a CPU, where operations run when called.
#pragma once

#include "training/devices/phase_timer.hpp"

#include <chrono>
#include <mutex>
#include <vector>

namespace bench::training {

class CpuPhaseTimer final : public PhaseTimer {
 public:
  void begin_step() override;
  StepTimes end_step() override;
  void enter(Phase phase) override;
  void enter_in_backward(Phase phase) override { enter(phase); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Mark {
    Phase phase;
    Clock::time_point at;
  };

  std::mutex mutex_;
  std::vector<Mark> marks_;
  Clock::time_point begin_;
};

}  // namespace bench::training
