#include "simulator/traffic.hpp"

#include <algorithm>

namespace bench::simulator {
namespace {

DeviceTraffic& end_of(SimulationResult& result, std::int32_t device) {
  return device == kNone ? result.host : result.devices[static_cast<std::size_t>(device)];
}

void count_copy(const Operation& op, SimulationResult& result) {
  if (op.device == op.peer) return;
  end_of(result, op.device).sent_bytes += op.bytes_moved;
  end_of(result, op.peer).received_bytes += op.bytes_moved;
}

// What one of `ranks` equal members sends (and receives) on average.
std::uint64_t bytes_per_member(const Operation& op, std::uint64_t ranks) {
  if (ranks < 2) return 0;
  const double share = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  const auto bytes = static_cast<double>(op.bytes_moved);
  switch (op.collective) {
    case CollectiveKind::all_reduce:
      return static_cast<std::uint64_t>(2 * share * bytes);
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
      return static_cast<std::uint64_t>(share * bytes);
    case CollectiveKind::all_gather:
      return op.bytes_moved * (ranks - 1);
    case CollectiveKind::none:
    case CollectiveKind::barrier:
      break;
  }
  return 0;
}

// Between the devices of a process the root is known: a chain from it (broadcast) or to it (reduce)
// in which every member but one end sends, and every member but the other receives.
void count_chain(const OperationGraph& graph, const std::vector<std::uint32_t>& members,
                 SimulationResult& result) {
  const Operation& first = graph.operations[members.front()];
  if (members.size() < 2) return;
  std::vector<std::int32_t> devices;
  for (const std::uint32_t m : members) devices.push_back(graph.operations[m].device);
  std::sort(devices.begin(), devices.end());
  const auto root = std::find(devices.begin(), devices.end(), first.root);
  if (root != devices.end()) std::rotate(devices.begin(), root, devices.end());
  if (first.collective == CollectiveKind::reduce) std::reverse(devices.begin(), devices.end());
  for (std::size_t i = 0; i + 1 < devices.size(); ++i) {
    end_of(result, devices[i]).sent_bytes += first.bytes_moved;
    end_of(result, devices[i + 1]).received_bytes += first.bytes_moved;
  }
}

void count_collective(const OperationGraph& graph, const ServiceOrder& order, std::uint32_t unit,
                      std::int32_t ranks, SimulationResult& result) {
  const Operation& op = graph.operations[unit];
  std::vector<std::uint32_t> members;
  for (std::uint32_t m = unit; m != kNoMember; m = order.next_member[m]) members.push_back(m);
  const bool chain =
      op.collective == CollectiveKind::broadcast || op.collective == CollectiveKind::reduce;
  if (!op.across_ranks && chain) return count_chain(graph, members, result);
  const auto size = op.across_ranks ? static_cast<std::uint64_t>(ranks) : members.size();
  const std::uint64_t bytes = bytes_per_member(op, size);
  for (const std::uint32_t m : members) {
    DeviceTraffic& device = end_of(result, graph.operations[m].device);
    device.sent_bytes += bytes;
    device.received_bytes += bytes;
  }
}

}  // namespace

void count_traffic(const OperationGraph& graph, const ServiceOrder& order, std::int32_t ranks,
                   SimulationResult& result) {
  result.devices.assign(static_cast<std::size_t>(graph.devices), {});
  for (std::uint32_t i = 0; i < graph.operations.size(); ++i) {
    const Operation& op = graph.operations[i];
    if (order.unit[i] != i) continue;
    if (op.kind == OpKind::copy) count_copy(op, result);
    if (op.kind == OpKind::collective) count_collective(graph, order, i, ranks, result);
  }
  std::uint64_t between_gpus = 0;
  for (const DeviceTraffic& device : result.devices) between_gpus += device.sent_bytes;
  between_gpus -= result.host.received_bytes;
  result.bytes_communicated = between_gpus * static_cast<std::uint64_t>(ranks);
}

}  // namespace bench::simulator
