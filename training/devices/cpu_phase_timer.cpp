#include "training/devices/cpu_phase_timer.hpp"

namespace bench::training {
namespace {

double milliseconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

}  // namespace

void CpuPhaseTimer::begin_step() {
  marks_.clear();
  begin_ = Clock::now();
}

void CpuPhaseTimer::enter(Phase phase) {
  const std::lock_guard lock(mutex_);
  marks_.push_back({phase, Clock::now()});
}

StepTimes CpuPhaseTimer::end_step() {
  const auto end = Clock::now();
  StepTimes times;
  times.wall_ms = milliseconds(end - begin_);
  for (std::size_t i = 0; i < marks_.size(); ++i) {
    const auto until = i + 1 < marks_.size() ? marks_[i + 1].at : end;
    times.phase_ms[simulator::phase_name(marks_[i].phase)] += milliseconds(until - marks_[i].at);
  }
  return times;
}

}  // namespace bench::training
