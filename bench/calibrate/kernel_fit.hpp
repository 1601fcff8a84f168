// The part of a calibration that concerns kernels: peak rates, efficiency curves, grouped
// convolutions and operators that take more than the curves say.
#pragma once

#include "bench/calibrate/samples.hpp"
#include "simulator/machine.hpp"

#include <vector>

namespace bench {

// Fills launch_ns, memory_bandwidth, the rates of all types, all curves, and the factors of `gpu`.
// Throws MachineError when samples are missing.
void fit_kernels(const CalibrationSamples& samples, simulator::GpuSpec& gpu);

bool is_matrix_product(const std::string& name);
bool is_convolution_backward(const std::string& name);
// Channels per group of a convolution's shape below its channels.
bool is_grouped(const OperationSample& sample);

}  // namespace bench
