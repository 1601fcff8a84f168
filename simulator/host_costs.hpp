// What the host pays for issuing work, for a C++ program and for Python's nn.DataParallel or DDP.
// Reference: a desktop-class core; NodeSpec::host_slowdown scales all of it for another host.
#pragma once

#include "bench/core/case.hpp"
#include "simulator/operation_graph.hpp"

#include <string_view>

namespace bench::simulator {

struct HostCosts {
  double interpreter_ns = 0;        // Python's part of one operator, under the interpreter lock
  double dispatch_ns = 0;           // one operator from the main or a replica's thread
  double backward_dispatch_ns = 0;  // one operator from an autograd thread (C++ in both profiles)
  double convolution_ns = 0;        // what a call of cuDNN adds
  double extra_launch_ns = 0;       // every kernel after an operator's first
  double collective_ns = 0;         // one collective or copy
  double launch_latency_ns = 0;     // from the end of the launch call to the kernel's start
  double synchronize_ns = 0;        // returning from a wait
  double module_replica_ns = 0;     // DP: replicating one module for one device
  double element_reset_ns = 0;      // libtorch DP: re-initialising one parameter element
  double graph_node_ns = 0;         // DDP find_unused_parameters: visiting one autograd node
  double pageable_kib_ns = 0;       // copying a KiB of pageable memory to a GPU: about 3 GB/s
  double other_item_ns = 0;
  bool interpreter_lock = false;  // main and replica threads share one lock
};

HostCosts host_costs(HostProfile profile);

// Host time of issuing an operation: first what holds the interpreter lock where there is one, then
// what does not. Python's bindings release the lock while the operator itself runs.
struct IssueTime {
  double locked_ns = 0;
  double free_ns = 0;
  double total_ns() const { return locked_ns + free_ns; }
};

// `name` is the operation's; `autograd_thread`: issued by the autograd engine, which is C++.
IssueTime issue_time(const Operation& op, std::string_view name, bool autograd_thread,
                     const HostCosts& costs);

bool is_autograd_thread(std::string_view thread);

}  // namespace bench::simulator
