#include "simulator/host_costs.hpp"

namespace bench::simulator {

HostCosts host_costs(HostProfile profile) {
  HostCosts costs;
  // An eager operator through the dispatcher with autograd takes 4 to 10 us from C++; Python adds
  // argument parsing and the module call around it.
  costs.dispatch_ns = 6e3;
  costs.backward_dispatch_ns = 8e3;
  costs.extra_launch_ns = 1.5e3;
  costs.collective_ns = 15e3;
  costs.launch_latency_ns = 5e3;
  costs.synchronize_ns = 5e3;
  costs.module_replica_ns = 4e3;
  costs.element_reset_ns = 2;
  costs.graph_node_ns = 100;
  costs.other_item_ns = 1e3;
  if (profile == HostProfile::python) {
    costs.dispatch_ns = 14e3;
    costs.module_replica_ns = 30e3;
    costs.interpreter_lock = true;
  }
  return costs;
}

bool is_autograd_thread(std::string_view thread) { return thread.starts_with("backward"); }

double issue_ns(const Operation& op, std::string_view name, bool autograd_thread,
                const HostCosts& costs) {
  switch (op.kind) {
    case OpKind::kernel: {
      const double first = autograd_thread ? costs.backward_dispatch_ns : costs.dispatch_ns;
      return first + (op.launches > 1 ? (op.launches - 1) * costs.extra_launch_ns : 0);
    }
    case OpKind::copy:
    case OpKind::collective:
      return costs.collective_ns;
    case OpKind::sync:
      return costs.synchronize_ns;
    case OpKind::host:
      break;
  }
  const double items = op.host_items;
  if (name == "replicate") return costs.dispatch_ns + items * costs.module_replica_ns;
  if (name == "reset") return costs.dispatch_ns + items * costs.element_reset_ns;
  if (name == "graph_walk") return costs.dispatch_ns + items * costs.graph_node_ns;
  return costs.dispatch_ns + items * costs.other_item_ns;
}

}  // namespace bench::simulator
