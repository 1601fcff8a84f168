#include "simulator/host_costs.hpp"

namespace bench::simulator {

HostCosts host_costs(HostProfile profile) {
  HostCosts costs;
  // An eager operator takes 5 to 10 us through the dispatcher with autograd.
  costs.dispatch_ns = 6e3;
  costs.backward_dispatch_ns = 8e3;
  costs.convolution_ns = 5e3;
  costs.extra_launch_ns = 1.5e3;
  costs.collective_ns = 15e3;
  costs.launch_latency_ns = 5e3;
  costs.synchronize_ns = 5e3;
  costs.module_replica_ns = 4e3;
  costs.element_reset_ns = 2;
  costs.graph_node_ns = 100;
  costs.pageable_kib_ns = 340;
  costs.other_item_ns = 1e3;
  if (profile == HostProfile::python) {
    // nn.DataParallel on two published machines (results/published/dp_scaling.csv, PyTorch 1.x):
    // every module costs about 0.1 ms a step and GPU, whether GPU or host bounds the step; most of
    // it replicates the module, the rest is Python's part of launching the forward pass.
    costs.interpreter_ns = 20e3;
    // Steps of small models there are bound by the host at about 0.2 ms per forward operator with
    // its backward; cuDNN's choice of algorithms is what convolutions add.
    costs.dispatch_ns = 10e3;
    costs.backward_dispatch_ns = 35e3;
    costs.convolution_ns = 40e3;
    costs.module_replica_ns = 82e3;
    costs.interpreter_lock = true;
  }
  return costs;
}

bool is_autograd_thread(std::string_view thread) { return thread.starts_with("backward"); }

namespace {

double item_ns(std::string_view name, const HostCosts& costs) {
  if (name == "replicate") return costs.module_replica_ns;
  if (name == "reset") return costs.element_reset_ns;
  if (name == "graph_walk") return costs.graph_node_ns;
  if (name == "pageable_copy") return costs.pageable_kib_ns;
  return costs.other_item_ns;
}

}  // namespace

IssueTime issue_time(const Operation& op, std::string_view name, bool autograd_thread,
                     const HostCosts& costs) {
  const double interpreter = autograd_thread ? 0 : costs.interpreter_ns;
  switch (op.kind) {
    case OpKind::kernel: {
      double dispatch = autograd_thread ? costs.backward_dispatch_ns : costs.dispatch_ns;
      if (op.launches > 1) dispatch += (op.launches - 1) * costs.extra_launch_ns;
      if (name == "aten::convolution") dispatch += costs.convolution_ns;
      // The gradients of input and weight are a call each.
      if (name == "aten::convolution_backward") dispatch += 2 * costs.convolution_ns;
      return {interpreter, dispatch};
    }
    case OpKind::copy:
    case OpKind::collective:
      return {interpreter, costs.collective_ns};
    case OpKind::sync:
      return {0, costs.synchronize_ns};
    case OpKind::host:
      break;
  }
  // A measured step says nothing about this work: anchoring does not scale it up (see anchor.hpp).
  return {interpreter + op.host_items * item_ns(name, costs), 0};
}

}  // namespace bench::simulator
