#include "simulator/graph_edit.hpp"

#include <algorithm>

namespace bench::simulator {
namespace {

constexpr std::uint32_t kDropped = 0xffffffffU;
constexpr std::uint64_t kBytesPerItem = 1024;

void map_deps(std::vector<std::uint32_t>& deps, const std::vector<std::uint32_t>& new_index) {
  std::vector<std::uint32_t> kept;
  for (const std::uint32_t dep : deps) {
    if (new_index[dep] != kDropped) kept.push_back(new_index[dep]);
  }
  deps = std::move(kept);
}

}  // namespace

OperationGraph without_phase(const OperationGraph& graph, Phase phase) {
  OperationGraph edited = graph;
  edited.operations.clear();
  edited.allocations.clear();
  std::vector<std::uint32_t> new_index(graph.operations.size(), kDropped);
  for (std::size_t i = 0; i < graph.operations.size(); ++i) {
    if (graph.operations[i].phase == phase) continue;
    Operation op = graph.operations[i];
    map_deps(op.device_deps, new_index);
    map_deps(op.issue_deps, new_index);
    new_index[i] = static_cast<std::uint32_t>(edited.operations.size());
    edited.operations.push_back(std::move(op));
  }
  return edited;
}

OperationGraph with_pageable_input(const OperationGraph& graph, std::uint64_t bytes_per_device) {
  OperationGraph edited = graph;
  const auto copies = static_cast<std::uint32_t>(graph.devices);
  const auto name = static_cast<std::uint32_t>(edited.names.size());
  edited.names.emplace_back("pageable_copy");
  Operation copy;
  copy.kind = OpKind::host;
  copy.phase = Phase::data;
  copy.name = name;
  copy.host_items = static_cast<std::uint32_t>(bytes_per_device / kBytesPerItem);
  for (Operation& op : edited.operations) {
    for (std::uint32_t& dep : op.device_deps) dep += copies;
    for (std::uint32_t& dep : op.issue_deps) dep += copies;
  }
  edited.operations.insert(edited.operations.begin(), copies, copy);
  for (Allocation& allocation : edited.allocations) {
    if (allocation.alloc_op != kNone) allocation.alloc_op += copies;
    if (allocation.free_op != kNone) allocation.free_op += copies;
  }
  return edited;
}

}  // namespace bench::simulator
