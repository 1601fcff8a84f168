// The parts of a calibration. Each fills its figures of the samples; what a device cannot do
// becomes a note.
#pragma once

#include "bench/calibrate/samples.hpp"

#include "training/calibrate/call_timer.hpp"

#include <functional>

namespace bench::training {

struct CalibrationTarget {
  std::vector<at::Device> devices;  // the first is measured, all of them for copies between them
  bool quick = false;
  std::function<void()> heartbeat;  // called between operators

  at::Device device() const { return devices.at(0); }
};

// Registers the virtual GPU that tells what an operator does; call before anything else, because
// the autograd engine starts one thread per device once.
void prepare_calibration();

void measure_device_facts(const CalibrationTarget& target, CalibrationSamples& samples);
void measure_operators(const CalibrationTarget& target, CalibrationSamples& samples);
void measure_host(const CalibrationTarget& target, CalibrationSamples& samples);
void measure_copies(const CalibrationTarget& target, CalibrationSamples& samples);
void measure_peers(const CalibrationTarget& target, CalibrationSamples& samples);
// After everything else: libraries load kernels when they are first used.
void measure_context(const CalibrationTarget& target, CalibrationSamples& samples);

// What a virtual GPU records of one call, `time` aside. Throws where a call is not one operation.
OperationSample recorded_call(const OperatorCall& call, at::ScalarType type);

}  // namespace bench::training
