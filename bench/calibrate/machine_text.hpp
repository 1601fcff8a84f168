// A calibrated machine as the machine file that `--machine` reads, with the provenance of every
// figure and a heading that says where and how it was measured.
#pragma once

#include "bench/calibrate/machine_fit.hpp"

#include <string>

namespace bench {

struct CalibrationContext {
  std::string command;  // as it was typed
  std::string date;     // UTC, ISO 8601
};

std::string machine_text(const CalibratedMachine& calibrated, const CalibrationSamples& samples,
                         const CalibrationContext& context);

}  // namespace bench
