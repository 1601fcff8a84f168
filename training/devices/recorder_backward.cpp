#include "training/devices/recorder_backward.hpp"

#include <c10/util/Exception.h>

#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace bench::training {
namespace {

// The operations of one autograd node, with what runs on its behalf right after it.
struct Unit {
  std::int32_t log = 0;
  std::int32_t begin = 0;  // operations [begin, end) of the log
  std::int32_t end = 0;
  std::uint64_t sequence = 0;
  std::size_t waits_for = 0;  // units that have to run first
  std::vector<std::size_t> dependents;
};

// One call into the engine: the units of all device threads.
class Call {
 public:
  explicit Call(const std::deque<std::unique_ptr<HostLog>>& logs) : logs_(logs) {}

  void add(std::int32_t log, std::int32_t index) {
    const LoggedOperation& logged = logs_[log]->operations[index];
    const bool same = !units_.empty() && units_.back().log == log && units_.back().end == index &&
                      (!logged.node || logged.node == node_);
    if (!same) {
      units_.emplace_back();
      units_.back().log = log;
      units_.back().begin = index;
      units_.back().sequence = logged.node_sequence;
    }
    if (logged.node) node_ = logged.node;
    units_.back().end = index + 1;
    unit_of_[{log, index}] = units_.size() - 1;
    threads_[logs_[log]->name].log = log;
  }

  // Appends the operations in their new order to the order of each log. True if there was a choice.
  bool schedule(LogOrders& orders) {
    if (threads_.size() < 2) {
      for (const Unit& unit : units_) append(unit, orders);
      return false;
    }
    for (std::size_t i = 0; i < units_.size(); ++i) find_deps(i);
    for (std::size_t i = 0; i < units_.size(); ++i) {
      if (units_[i].waits_for == 0) make_ready(i, 0);
    }
    std::size_t left = units_.size();
    for (std::int64_t tick = 0; left > 0; ++tick) left -= run_tick(tick, orders);
    return true;
  }

 private:
  // Higher sequence numbers first, as in the engine's queue; then what became ready first; then by
  // what it computes. Units that agree in all of it are interchangeable.
  using Key = std::tuple<std::uint64_t, std::int64_t, std::string, std::string, std::size_t>;
  struct Thread {
    std::int32_t log = 0;
    std::map<Key, std::size_t> ready;
  };

  void find_deps(std::size_t index) {
    std::set<std::size_t> deps;
    const Unit& unit = units_[index];
    for (std::int32_t i = unit.begin; i < unit.end; ++i) {
      const LoggedOperation& logged = logs_[unit.log]->operations[i];
      for (const auto* list : {&logged.device_deps, &logged.thread_deps}) {
        for (const OpRef& dep : *list) {
          const auto found = unit_of_.find({dep.thread, dep.index});
          if (found != unit_of_.end() && found->second != index) deps.insert(found->second);
        }
      }
    }
    units_[index].waits_for = deps.size();
    for (const std::size_t dep : deps) units_[dep].dependents.push_back(index);
  }

  void make_ready(std::size_t index, std::int64_t tick) {
    Unit& unit = units_[index];
    const HostLog& log = *logs_[unit.log];
    const LoggedOperation& first = log.operations[unit.begin];
    threads_[log.name].ready.emplace(Key{~unit.sequence, tick, first.name, first.shape, index},
                                     index);
  }

  // Every thread runs its preferred unit; what that makes ready on other threads runs in the next
  // tick at the earliest.
  std::size_t run_tick(std::int64_t tick, LogOrders& orders) {
    std::vector<std::size_t> chosen;
    for (auto& [name, thread] : threads_) {
      if (thread.ready.empty()) continue;
      chosen.push_back(thread.ready.begin()->second);
      thread.ready.erase(thread.ready.begin());
    }
    TORCH_CHECK(!chosen.empty(), "vgpu recorder: the backward pass waits for itself");
    for (const std::size_t index : chosen) {
      append(units_[index], orders);
      for (const std::size_t dependent : units_[index].dependents) {
        if (--units_[dependent].waits_for == 0) make_ready(dependent, tick + 1);
      }
    }
    return chosen.size();
  }

  static void append(const Unit& unit, LogOrders& orders) {
    for (std::int32_t i = unit.begin; i < unit.end; ++i) orders[unit.log].push_back(i);
  }

  const std::deque<std::unique_ptr<HostLog>>& logs_;
  std::vector<Unit> units_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> unit_of_;
  std::map<std::string, Thread> threads_;
  const void* node_ = nullptr;
};

// A thread's first operation of a call carries its fork, and whoever joined it names its last one:
// both belong to other operations after sorting. `begin` and `end` bound the call in the log.
void move_ends(const std::deque<std::unique_ptr<HostLog>>& logs, std::int32_t log,
               const std::vector<std::int32_t>& order, std::size_t begin, std::size_t end) {
  auto& operations = logs[log]->operations;
  const auto first = static_cast<std::int32_t>(begin);
  const auto last = static_cast<std::int32_t>(end) - 1;
  if (order[begin] != first) {
    operations[order[begin]].issue_deps.swap(operations[first].issue_deps);
  }
  if (order[end - 1] == last) return;
  for (const auto& other : logs) {
    for (LoggedOperation& logged : other->operations) {
      for (OpRef& dep : logged.issue_deps) {
        if (dep == OpRef{log, last}) dep.index = order[end - 1];
      }
    }
  }
}

}  // namespace

LogOrders order_backward(const std::deque<std::unique_ptr<HostLog>>& logs) {
  std::map<std::uint64_t, Call> calls;
  for (const auto& log : logs) {
    for (std::size_t i = 0; i < log->operations.size(); ++i) {
      const std::uint64_t id = log->operations[i].backward_id;
      if (id == 0) continue;
      calls.try_emplace(id, logs).first->second.add(log->index, static_cast<std::int32_t>(i));
    }
  }
  LogOrders orders(logs.size());
  std::vector<bool> changed(logs.size(), false);
  for (auto& [id, call] : calls) {
    std::vector<std::size_t> begins;
    for (const auto& order : orders) begins.push_back(order.size());
    const bool choice = call.schedule(orders);
    for (std::size_t log = 0; log < orders.size(); ++log) {
      if (!choice || orders[log].size() == begins[log]) continue;
      changed[log] = true;
      move_ends(logs, static_cast<std::int32_t>(log), orders[log], begins[log], orders[log].size());
    }
  }
  for (std::size_t log = 0; log < orders.size(); ++log) {
    if (!changed[log]) orders[log].clear();
  }
  return orders;
}

}  // namespace bench::training
