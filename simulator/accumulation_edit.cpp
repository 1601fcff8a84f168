#include "simulator/accumulation_edit.hpp"

#include "simulator/allocation_order.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace bench::simulator {
namespace {

constexpr std::int64_t kNowhere = -1;

// Where the micro-batches of a step begin; the last ends where the optimizer begins.
struct Parts {
  std::int64_t middle = 0;
  std::int64_t last = 0;
  std::int64_t end = 0;
};

bool begins_micro_batch(Phase phase) {
  return phase == Phase::data || phase == Phase::scatter || phase == Phase::broadcast ||
         phase == Phase::forward;
}

std::optional<Parts> parts_of(const OperationGraph& graph) {
  std::vector<std::int64_t> begins{0};
  std::int64_t end = kNowhere;
  bool backward = false;
  for (std::size_t i = 0; i < graph.operations.size(); ++i) {
    const Phase phase = graph.operations[i].phase;
    if (phase == Phase::backward || phase == Phase::loss) {
      if (end != kNowhere) return std::nullopt;
      backward = true;
    } else if (backward && begins_micro_batch(phase)) {
      begins.push_back(static_cast<std::int64_t>(i));
      backward = false;
    } else if (backward && phase == Phase::optimizer && end == kNowhere) {
      end = static_cast<std::int64_t>(i);
    }
  }
  if (begins.size() != kRecordedMicroBatches || end == kNowhere) return std::nullopt;
  return Parts{begins[1], begins[2], end};
}

auto work_of(const Operation& op) {
  return std::tie(op.kind, op.collective, op.phase, op.dtype, op.name, op.shape, op.device,
                  op.stream, op.peer, op.host_thread, op.root, op.across_ranks, op.blocking,
                  op.launches, op.flops, op.bytes_read, op.bytes_written, op.bytes_moved,
                  op.host_items);
}

auto key_of(const Allocation& a) { return std::tie(a.device, a.category, a.bytes); }

class Repeater {
 public:
  Repeater(const OperationGraph& graph, Parts parts, int count)
      : graph_(graph),
        parts_(parts),
        length_(parts.last - parts.middle),
        copies_(count - 2),
        edited_(graph) {
    edited_.operations.clear();
    edited_.allocations.clear();
    edited_.global_batch = graph.global_batch / kRecordedMicroBatches * count;
  }

  std::optional<OperationGraph> edit() {
    if (!find_twins()) return std::nullopt;
    for (std::int64_t i = 0; i < parts_.middle; ++i) add(op_at(i));
    for (int copy = 0; copy < copies_; ++copy) {
      for (std::int64_t i = parts_.middle; i < parts_.last; ++i) add_copy(i, copy);
    }
    const auto size = static_cast<std::int64_t>(graph_.operations.size());
    for (std::int64_t i = parts_.last; i < size; ++i) add_moved(i);
    number_groups();
    for (const Allocation& allocation : graph_.allocations) add(allocation);
    if (!number_survivors() || !number_inputs() || !whole_) return std::nullopt;
    sort_allocations(edited_.allocations);
    return std::move(edited_);
  }

 private:
  const Operation& op_at(std::int64_t i) const {
    return graph_.operations[static_cast<std::size_t>(i)];
  }
  bool in_middle(std::int64_t i) const { return i >= parts_.middle && i < parts_.last; }
  bool in_last(std::int64_t i) const { return i >= parts_.last && i < parts_.end; }
  // What follows the micro-batch in the middle moves by the copies that come or go.
  std::int64_t moved(std::int64_t i) const { return i + (copies_ - 1) * length_; }

  // The work of the last micro-batch is that of the one in the middle, with the reduction between.
  bool find_twins() {
    twin_.assign(graph_.operations.size(), kNowhere);
    std::int64_t at = parts_.last;
    for (std::int64_t i = parts_.middle; i < parts_.last; ++i, ++at) {
      while (at < parts_.end && work_of(op_at(at)) != work_of(op_at(i))) ++at;
      if (at == parts_.end) return false;
      twin_[static_cast<std::size_t>(i)] = at;
      twin_[static_cast<std::size_t>(at)] = i;
    }
    return true;
  }
  std::int64_t twin(std::int64_t i) const { return twin_[static_cast<std::size_t>(i)]; }

  using Deps = std::vector<std::uint32_t> Operation::*;

  void add(Operation op) { edited_.operations.push_back(std::move(op)); }

  // A copy waits for the one before it as the last micro-batch waits for the one in the middle.
  std::vector<std::uint32_t> deps_of_copy(std::int64_t i, int copy, Deps deps) const {
    if (copy == 0) return op_at(i).*deps;
    std::vector<std::uint32_t> found;
    for (const std::int64_t dep : op_at(twin(i)).*deps) {
      if (dep >= parts_.last) continue;
      const std::int64_t shift = in_middle(dep) ? (copy - 1) * length_ : 0;
      found.push_back(static_cast<std::uint32_t>(dep + shift));
    }
    for (const std::int64_t dep : op_at(i).*deps) {
      if (in_middle(dep)) found.push_back(static_cast<std::uint32_t>(dep + copy * length_));
    }
    return sorted(std::move(found));
  }

  void add_copy(std::int64_t i, int copy) {
    Operation op = op_at(i);
    op.device_deps = deps_of_copy(i, copy, &Operation::device_deps);
    op.issue_deps = deps_of_copy(i, copy, &Operation::issue_deps);
    add(std::move(op));
  }

  // Without a micro-batch in the middle the last waits for the first as that one did.
  std::vector<std::uint32_t> deps_of_moved(std::int64_t i, Deps deps) {
    std::vector<std::uint32_t> found;
    bool waits = false;
    for (const std::int64_t dep : op_at(i).*deps) {
      waits = waits || in_middle(dep);
      if (in_middle(dep) && copies_ == 0) continue;
      found.push_back(static_cast<std::uint32_t>(dep < parts_.middle ? dep : moved(dep)));
    }
    if (!waits) return found;
    if (!in_last(i) || (copies_ == 0 && twin(i) == kNowhere)) whole_ = false;
    if (!whole_ || copies_ > 0) return found;
    for (const std::int64_t dep : op_at(twin(i)).*deps) {
      if (dep < parts_.middle) found.push_back(static_cast<std::uint32_t>(dep));
    }
    return sorted(std::move(found));
  }

  void add_moved(std::int64_t i) {
    Operation op = op_at(i);
    op.device_deps = deps_of_moved(i, &Operation::device_deps);
    op.issue_deps = deps_of_moved(i, &Operation::issue_deps);
    add(std::move(op));
  }

  static std::vector<std::uint32_t> sorted(std::vector<std::uint32_t> deps) {
    std::sort(deps.begin(), deps.end());
    deps.erase(std::unique(deps.begin(), deps.end()), deps.end());
    return deps;
  }

  // Collectives are numbered as they appear; the members of a group lie in one micro-batch.
  void number_groups() {
    std::map<std::pair<std::uint32_t, std::int64_t>, std::uint32_t> numbers;
    for (std::size_t i = 0; i < edited_.operations.size(); ++i) {
      std::uint32_t& group = edited_.operations[i].group;
      if (group == 0) continue;
      const auto next = static_cast<std::uint32_t>(numbers.size() + 1);
      group =
          numbers.try_emplace({group, copy_of(static_cast<std::int64_t>(i))}, next).first->second;
    }
  }
  std::int64_t copy_of(std::int64_t i) const {
    return i < parts_.middle ? -1 : std::min<std::int64_t>((i - parts_.middle) / length_, copies_);
  }

  void keep(Allocation a, std::int64_t alloc_op, std::int64_t free_op) {
    a.alloc_op = alloc_op;
    a.free_op = free_op;
    edited_.allocations.push_back(a);
  }

  void add(const Allocation& a) {
    if (in_middle(a.alloc_op)) return add_copies(a);
    const std::int64_t alloc_op = a.alloc_op < parts_.middle ? a.alloc_op : moved(a.alloc_op);
    std::int64_t free_op = a.free_op;
    if (in_middle(free_op) && copies_ == 0) {
      free_op = moved(twin(free_op));
    } else if (free_op >= parts_.last) {
      free_op = moved(free_op);
    }
    keep(a, alloc_op, free_op);
  }

  // What lives on into the next micro-batch is freed there where the last frees it.
  void add_copies(const Allocation& a) {
    if (a.free_op == kNone) survivors_.push_back(a);
    for (int copy = 0; copy < copies_; ++copy) {
      std::int64_t free_op = a.free_op;
      if (in_middle(free_op)) {
        free_op += copy * length_;
      } else if (in_last(free_op) && copy + 1 < copies_) {
        if (twin(free_op) == kNowhere) whole_ = false;
        free_op = twin(free_op) + (copy + 1) * length_;
      } else if (free_op != kNone) {
        free_op = moved(free_op);
      }
      keep(a, a.alloc_op + copy * length_, free_op);
    }
  }

  // What a micro-batch leaves behind is found, and freed, by the next step.
  bool number_survivors() {
    auto& all = edited_.allocations;
    for (const Allocation& survivor : survivors_) {
      const auto left = [&](const Allocation& a) {
        return a.alloc_op == kNone && a.free_op != kNone && key_of(a) == key_of(survivor);
      };
      const auto found = std::find_if(all.begin(), all.end(), left);
      if (found == all.end()) return false;
      const Allocation before = *found;
      if (std::any_of(all.begin(), all.end(), [&](const Allocation& a) {
            return left(a) && a.free_op != before.free_op;
          })) {
        return false;
      }
      if (copies_ == 0) all.erase(found);
      for (int copy = 1; copy < copies_; ++copy) all.push_back(before);
    }
    return true;
  }

  // The batches of a step are made beforehand, one for each micro-batch.
  bool number_inputs() {
    std::map<std::tuple<std::int32_t, std::uint64_t>, std::pair<Allocation, int>> inputs;
    std::erase_if(edited_.allocations, [&](const Allocation& a) {
      const bool input =
          a.category == MemoryCategory::inputs && a.alloc_op == kNone && a.free_op == kNone;
      if (input) ++inputs.try_emplace({a.device, a.bytes}, a, 0).first->second.second;
      return input;
    });
    for (const auto& [key, input] : inputs) {
      if (input.second % kRecordedMicroBatches != 0) return false;
      const int each = input.second / kRecordedMicroBatches;
      edited_.allocations.insert(edited_.allocations.end(),
                                 static_cast<std::size_t>(each * (copies_ + 2)), input.first);
    }
    return true;
  }

  const OperationGraph& graph_;
  const Parts parts_;
  const std::int64_t length_;  // of the micro-batch in the middle
  const std::int64_t copies_;  // of it
  OperationGraph edited_;
  std::vector<std::int64_t> twin_;  // middle -> last and back
  std::vector<Allocation> survivors_;
  bool whole_ = true;  // no operation was met that the recording does not explain
};

}  // namespace

std::optional<OperationGraph> with_micro_batches(const OperationGraph& graph, int count) {
  const auto parts = parts_of(graph);
  if (!parts || count < kLeastMicroBatches) return std::nullopt;
  if (count == kRecordedMicroBatches) return graph;
  return Repeater(graph, *parts, count).edit();
}

}  // namespace bench::simulator
