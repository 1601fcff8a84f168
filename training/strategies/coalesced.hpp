// The two collectives of Python's DataParallel, between the devices of one process: broadcast of
// many tensors from the primary device and sum of many gradients onto it, each in buffers of 10
// MiB. On CUDA these are PyTorch's own functions over NCCL; virtual GPUs get the same groups and
// buffers.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <vector>

namespace bench::training {

// Buffer size of torch/nn/parallel/comm.py.
inline constexpr std::size_t kCoalesceBytes = 10485760;

// tensors[device][index].
using TensorGrid = std::vector<std::vector<at::Tensor>>;

// Copies of `tensors`, which are on devices[0], for every device. Those of devices[0] alias the
// originals; the others are views of the received buffers.
TensorGrid broadcast_coalesced(at::TensorList tensors, const std::vector<at::Device>& devices);

// Sums over the devices, on the device of the first row.
std::vector<at::Tensor> reduce_add_coalesced(const TensorGrid& tensors);

double total_bytes(const std::vector<at::Tensor>& tensors);

// Indices of the tensors that share a reduction buffer: a buffer closes before it would exceed
// `limit_bytes` (Python's _take_tensors), each data type on its own.
std::vector<std::vector<std::size_t>> reduction_groups(at::TensorList tensors,
                                                       std::size_t limit_bytes = kCoalesceBytes);

}  // namespace bench::training
