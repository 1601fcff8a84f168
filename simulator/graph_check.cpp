#include "bench/core/error.hpp"
#include "simulator/graph_io.hpp"

#include <string>

namespace bench::simulator {
namespace {

constexpr std::int32_t kStreams = 4;
// More than any machine; bounds what a damaged file can make us allocate.
constexpr std::int32_t kMaxDevices = 4096;
constexpr std::int32_t kMaxWorldSize = 1 << 24;

class GraphChecker {
 public:
  GraphChecker(const OperationGraph& graph, const std::string& name) : graph_(graph), name_(name) {}

  void check() const {
    require(graph_.devices >= 1 && graph_.devices <= kMaxDevices, "devices out of range");
    require(graph_.world_size >= 1 && graph_.world_size <= kMaxWorldSize,
            "world size out of range");
    require(!graph_.names.empty(), "names must start with the empty name");
    for (std::size_t i = 0; i < graph_.operations.size(); ++i) check_operation(i);
    for (std::size_t i = 0; i < graph_.allocations.size(); ++i) check_allocation(i);
  }

 private:
  void require(bool holds, const std::string& message) const {
    if (!holds) throw UsageError(name_ + ": " + message);
  }

  void require(bool holds, std::size_t index, const char* message) const {
    if (!holds) {
      throw UsageError(name_ + ": operation " + std::to_string(index) + ": " + message);
    }
  }

  bool is_device(std::int32_t device) const { return device >= 0 && device < graph_.devices; }

  void check_operation(std::size_t i) const {
    const Operation& op = graph_.operations[i];
    require(op.name < graph_.names.size(), i, "name out of range");
    require(op.shape < graph_.names.size(), i, "shape out of range");
    require(op.host_thread < graph_.host_threads.size(), i, "host thread out of range");
    require(op.device == kNone || is_device(op.device), i, "device out of range");
    require(op.peer == kNone || is_device(op.peer), i, "peer out of range");
    require(op.stream >= 0 && op.stream < kStreams, i, "stream out of range");
    require(op.flops >= 0, i, "negative flops");
    check_kind(op, i);
    for (const std::uint32_t dep : op.device_deps) {
      require(dep < i, i, "device dependency does not point backwards");
    }
    for (const std::uint32_t dep : op.issue_deps) {
      require(dep < i, i, "issue dependency does not point backwards");
    }
  }

  void check_kind(const Operation& op, std::size_t i) const {
    switch (op.kind) {
      case OpKind::kernel:
        require(op.device != kNone, i, "a kernel needs a device");
        break;
      case OpKind::copy:
        require(op.device != kNone || op.peer != kNone, i, "a copy needs a device on one side");
        break;
      case OpKind::collective:
        require(op.device != kNone, i, "a collective needs a device");
        require(op.collective != CollectiveKind::none, i, "a collective needs its kind");
        require(op.across_ranks || op.group > 0, i, "a collective between devices needs a group");
        break;
      case OpKind::host:
      case OpKind::sync:
        break;
    }
  }

  void check_allocation(std::size_t i) const {
    const Allocation& a = graph_.allocations[i];
    const auto operations = static_cast<std::int64_t>(graph_.operations.size());
    const std::string where = "allocation " + std::to_string(i) + ": ";
    require(is_device(a.device), where + "device out of range");
    require(a.alloc_op >= kNone && a.alloc_op < operations, where + "alloc_op out of range");
    require(a.free_op >= kNone && a.free_op < operations, where + "free_op out of range");
    require(a.free_op == kNone || a.free_op >= a.alloc_op, where + "freed before it is taken");
  }

  const OperationGraph& graph_;
  const std::string& name_;
};

}  // namespace

void check_graph(const OperationGraph& graph, const std::string& name) {
  GraphChecker(graph, name).check();
}

}  // namespace bench::simulator
