// Calibration samples -> a machine of the simulator. Pure: the same samples give the same machine.
//
// Peaks are the best rates that were measured, and efficiency curves are shares of those, so that
// nothing of a data sheet remains in the kernels. The order is that of simulator/kernel_time.hpp:
// what a launch costs, then memory, then arithmetic, then what single operators add.
#pragma once

#include "bench/calibrate/samples.hpp"
#include "simulator/machine.hpp"

#include <string>
#include <vector>

namespace bench {

// How well the fitted machine gives the measured times of one family of operators back.
struct FitLine {
  std::string family;  // "convolution forward, float32"
  int samples = 0;
  double mean_error = 0;  // of absolute relative errors
  double worst_error = 0;
  std::string worst;  // operator and shape
};

struct CalibratedMachine {
  simulator::Machine machine;
  std::vector<FitLine> lines;  // families in a fixed order, all operators last
};

// Throws MachineError when there are too few samples to fit, or when they contradict each other.
CalibratedMachine fit_machine(const CalibrationSamples& samples);

// Relative error of what the machine says about every sample, in their order.
std::vector<double> fit_errors(const CalibrationSamples& samples, const simulator::GpuSpec& gpu);

}  // namespace bench
