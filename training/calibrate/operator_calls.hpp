// The operators that a calibration times, with the shapes of classifiers and language models:
// matrix products, convolutions forward and backward, dense, grouped and depthwise, and what
// streams through memory. One row is one operator, so that its time belongs to one recorded
// operation.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

namespace bench::training {

using Call = std::function<void()>;

struct OperatorCall {
  std::string label;  // for messages: "convolution 64x56 -> 64, 3x3, batch 32"
  double bytes = 0;   // of its tensors, roughly: to leave out what a device cannot hold
  // Makes the inputs on the options' device in their type, and returns what is to be timed.
  std::function<Call(const at::TensorOptions&)> prepare;
};

// How much to measure.
struct CallRange {
  std::vector<std::int64_t> batches;  // of images
  std::vector<std::int64_t> edges;    // of square matrices
  int stream_from = 12;               // streaming operators: 2^from to 2^to elements
  int stream_to = 28;
  bool every_layer = true;
};
CallRange call_range(at::Device device, bool quick);

std::vector<OperatorCall> operator_calls(const CallRange& range);

// Values to compute with; virtual GPUs need only the shape.
at::Tensor filled(at::IntArrayRef shape, const at::TensorOptions& options);

}  // namespace bench::training
