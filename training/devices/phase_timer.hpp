// Times the phases of a step on a real device: with CUDA events on the primary GPU, with the host's
// clock on a CPU.
#pragma once

#include "training/strategies/phase_sink.hpp"

#include <c10/core/Device.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace bench::training {

struct StepTimes {
  double wall_ms = 0;
  double device_ms = -1;                   // CUDA events around the step; -1 where there are none
  std::map<std::string, double> phase_ms;  // by phase_name(); a phase entered twice is summed
};

class PhaseTimer : public PhaseSink {
 public:
  virtual void begin_step() = 0;
  // Waits for the devices.
  virtual StepTimes end_step() = 0;
};

// For the process whose primary device is devices[0].
std::unique_ptr<PhaseTimer> make_phase_timer(const std::vector<c10::Device>& devices);

}  // namespace bench::training
