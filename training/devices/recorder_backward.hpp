// A canonical order for what autograd's device threads issued. A node that waits for gradients of
// several devices (the sum of replicas' gradients in libtorch's data_parallel) runs whenever the
// last of them arrives, so its place among its thread's other nodes depends on timing. Here nodes
// are scheduled again, in lockstep: every thread runs one node per tick, the ready one that the
// engine would prefer (highest sequence number).
#pragma once

#include "training/devices/recorder_log.hpp"

#include <deque>
#include <memory>
#include <vector>

namespace bench::training {

// For each log the order of its operations; empty where the order they were issued in stands.
using LogOrders = std::vector<std::vector<std::int32_t>>;

// Also moves the dependencies on a thread's fork and on its end to the operations that are first
// and last now.
LogOrders order_backward(const std::deque<std::unique_ptr<HostLog>>& logs);

}  // namespace bench::training
