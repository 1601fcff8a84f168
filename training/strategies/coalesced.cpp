#include "training/strategies/coalesced.hpp"

#include "training/devices/recorder.hpp"
#include "training/devices/vgpu.hpp"

#include <torch/csrc/cuda/comm.h>
#include <torch/csrc/cuda/nccl.h>
#include <torch/csrc/utils/tensor_flatten.h>

#include <algorithm>

namespace bench::training {
namespace {

using simulator::CollectiveKind;
using simulator::MemoryCategory;

// What NCCL does in one call, for virtual GPUs: members wait for each other on their compute
// streams, which is where torch::cuda::nccl runs.
CollectiveSpec collective(CollectiveKind kind, const char* name, const at::Tensor& flat) {
  CollectiveSpec spec;
  spec.kind = kind;
  spec.name = name;
  spec.payload_bytes = flat.nbytes();
  spec.root = flat.device().index();
  spec.dtype = record_dtype(flat.scalar_type());
  spec.stream = kComputeStream;
  return spec;
}

// `flat` from its device to all devices after the first.
std::vector<at::Tensor> broadcast_flat(const at::Tensor& flat,
                                       const std::vector<at::Device>& devices) {
  std::vector<at::Tensor> received{flat};
  std::vector<CollectiveMember> members{{flat.device().index(), {flat}, {}}};
  for (std::size_t i = 1; i < devices.size(); ++i) {
    const CategoryScope category(MemoryCategory::parameters);
    auto copy = at::empty(flat.sizes(), flat.options().device(devices[i]));
    const RecordingPause pause;
    copy.copy_(flat);
    members.push_back({devices[i].index(), {}, {copy}});
    received.push_back(std::move(copy));
  }
  record_collective(collective(CollectiveKind::broadcast, "nccl::broadcast", flat), members);
  return received;
}

TensorGrid broadcast_between_vgpus(at::TensorList tensors, const std::vector<at::Device>& devices) {
  TensorGrid outputs(devices.size());
  outputs[0] = tensors.vec();
  for (auto& group : torch::utils::take_tensors(tensors, kCoalesceBytes)) {
    std::vector<at::Tensor> flats;
    {
      const CategoryScope category(MemoryCategory::buckets);
      flats = broadcast_flat(at::flatten_dense_tensors(group.tensors), devices);
    }
    for (std::size_t i = 1; i < devices.size(); ++i) {
      for (auto& view : at::unflatten_dense_tensors(flats[i], group.tensors)) {
        outputs[i].push_back(std::move(view));
      }
    }
  }
  // Groups are per data type: put mixed types back into the order that the caller gave.
  for (std::size_t i = 1; i < devices.size(); ++i) {
    torch::utils::reorder_tensors_like(outputs[i], tensors);
  }
  return outputs;
}

at::Tensor reduce_vgpu_flats(const std::vector<at::Tensor>& flats) {
  const auto result = [&] {
    const CategoryScope category(MemoryCategory::gradients);
    return at::empty_like(flats[0]);
  }();
  if (!shape_execution()) {
    // Summed on the host, so that no device pays for memory that NCCL would not take.
    const RecordingPause pause;
    auto sum = flats[0].to(at::kCPU);
    for (std::size_t i = 1; i < flats.size(); ++i) sum.add_(flats[i].to(at::kCPU));
    result.copy_(sum);
  }
  std::vector<CollectiveMember> members;
  for (const auto& flat : flats) members.push_back({flat.device().index(), {flat}, {}});
  members[0].writes.push_back(result);
  record_collective(collective(CollectiveKind::reduce, "nccl::reduce", flats[0]), members);
  return result;
}

at::Tensor reduce_flats(const std::vector<at::Tensor>& flats) {
  if (flats.size() == 1) return flats[0];
  if (is_vgpu(flats[0])) return reduce_vgpu_flats(flats);
  auto result = at::empty_like(flats[0]);
  torch::cuda::nccl::reduce(flats, result, /*root=*/0);
  return result;
}

}  // namespace

TensorGrid broadcast_coalesced(at::TensorList tensors, const std::vector<at::Device>& devices) {
  if (tensors.empty()) return TensorGrid(devices.size());
  if (is_vgpu(tensors[0])) return broadcast_between_vgpus(tensors, devices);
  std::vector<std::int64_t> indices;
  for (const auto& device : devices) indices.push_back(device.index());
  return torch::cuda::broadcast_coalesced(tensors, indices, kCoalesceBytes);
}

double total_bytes(const std::vector<at::Tensor>& tensors) {
  double bytes = 0;
  for (const auto& tensor : tensors) bytes += static_cast<double>(tensor.nbytes());
  return bytes;
}

std::vector<std::vector<std::size_t>> reduction_groups(at::TensorList tensors,
                                                       std::size_t limit_bytes) {
  struct Group {
    at::ScalarType type;
    std::vector<std::size_t> indices;
    std::size_t bytes = 0;
  };
  std::vector<std::vector<std::size_t>> closed;
  std::vector<Group> open;  // in the order in which the types appear
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto type = tensors[i].scalar_type();
    auto found = std::find_if(open.begin(), open.end(),
                              [type](const Group& group) { return group.type == type; });
    if (found == open.end()) found = open.insert(open.end(), Group{type, {}, 0});
    auto& group = *found;
    if (group.bytes > 0 && group.bytes + tensors[i].nbytes() > limit_bytes) {
      closed.push_back(std::move(group.indices));
      group = {type, {}, 0};
    }
    group.indices.push_back(i);
    group.bytes += tensors[i].nbytes();
  }
  for (auto& group : open) closed.push_back(std::move(group.indices));
  return closed;
}

std::vector<at::Tensor> reduce_add_coalesced(const TensorGrid& tensors) {
  std::vector<at::Tensor> sums(tensors.at(0).size());
  for (const auto& group : reduction_groups(tensors[0])) {
    std::vector<at::Tensor> flats;
    std::vector<at::Tensor> like;
    for (const auto index : group) like.push_back(tensors[0][index]);
    for (const auto& row : tensors) {
      std::vector<at::Tensor> members;
      for (const auto index : group) members.push_back(row[index]);
      const CategoryScope category(MemoryCategory::buckets);
      flats.push_back(at::flatten_dense_tensors(members));
    }
    const auto views = at::unflatten_dense_tensors(reduce_flats(flats), like);
    for (std::size_t i = 0; i < group.size(); ++i) sums[group[i]] = views[i].variable_data();
  }
  return sums;
}

}  // namespace bench::training
