// Time of one operation on one GPU: a roofline of arithmetic and memory traffic, each with the
// share of its peak that operations of that size reach, plus what every kernel launch costs its
// stream. Never shorter than FLOPs over the peak rate or bytes over the memory bandwidth.
#pragma once

#include "simulator/machine.hpp"
#include "simulator/operation_graph.hpp"

#include <cstdint>
#include <string_view>

namespace bench::simulator {

// `name` is the operator's, e.g. "aten::convolution": cuDNN convolutions of float32 use TF32 where
// the GPU has it, matrix products do not (PyTorch's defaults).
// `shape` tells grouped convolutions apart.
double kernel_ns(const Operation& op, std::string_view name, std::string_view shape,
                 const GpuSpec& gpu);

bool is_convolution(std::string_view name);

// What a convolution of this shape reaches of the curve: 1 without groups.
double grouped_convolution_share(std::string_view shape, const GpuSpec& gpu);

// TFLOPS that `op` could reach at best.
double peak_tflops(const Operation& op, std::string_view name, const GpuSpec& gpu);

}  // namespace bench::simulator
