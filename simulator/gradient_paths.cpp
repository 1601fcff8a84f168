#include "simulator/gradient_paths.hpp"

#include <algorithm>
#include <map>

namespace bench::simulator {
namespace {

bool is_bucket(const Operation& op) {
  return op.kind == OpKind::collective && op.across_ranks &&
         op.collective == CollectiveKind::all_reduce && op.phase == Phase::reduce;
}

class Reader {
 public:
  explicit Reader(const OperationGraph& graph) : graph_(graph) {}

  GradientPaths read() {
    for (std::uint32_t i = 0; i < graph_.operations.size(); ++i) {
      if (is_bucket(graph_.operations[i]) && !add_bucket(i)) return {};
    }
    return std::move(paths_);
  }

 private:
  bool named(const Operation& op, const char* name) const { return graph_.names[op.name] == name; }

  // What copies gradients back waits for the bucket on the device and comes in its order.
  std::vector<GradientPath> copies_back(std::uint32_t bucket) const {
    std::vector<GradientPath> copies;
    for (std::uint32_t i = bucket + 1; i < graph_.operations.size(); ++i) {
      const Operation& op = graph_.operations[i];
      const bool waits =
          std::find(op.device_deps.begin(), op.device_deps.end(), bucket) != op.device_deps.end();
      if (waits && named(op, "aten::copy_")) copies.push_back({0, i, op.bytes_written});
    }
    return copies;
  }

  // The last gradient of a bucket is what the reduction waits for; the others are found before it.
  bool add_bucket(std::uint32_t bucket) {
    const Operation& reduction = graph_.operations[bucket];
    std::vector<GradientPath> members = copies_back(bucket);
    std::uint64_t bytes = 0;
    for (const GradientPath& member : members) bytes += member.bytes;
    if (members.empty() || bytes != reduction.bytes_moved || reduction.device_deps.size() != 1) {
      return false;
    }
    std::uint32_t at = reduction.device_deps.front() + 1;
    for (auto member = members.rbegin(); member != members.rend(); ++member) {
      do {
        if (at == first_free_) return false;
        --at;
      } while (!scales_into_bucket(graph_.operations[at], member->bytes));
      member->copy_in = at;
    }
    if (members.back().copy_in != reduction.device_deps.front()) return false;
    first_free_ = members.back().copy_in + 1;
    paths_.gradients.insert(paths_.gradients.end(), members.begin(), members.end());
    paths_.buckets.push_back(bucket);
    return true;
  }

  bool scales_into_bucket(const Operation& op, std::uint64_t bytes) const {
    return op.kind == OpKind::kernel && op.bytes_written == bytes && named(op, "aten::mul");
  }

  const OperationGraph& graph_;
  std::uint32_t first_free_ = 0;  // gradients of earlier buckets come before it
  GradientPaths paths_;
};

// Buckets are filled while gradients become ready, and all of them are reduced before the first
// gradient comes back.
bool in_order(const GradientPaths& paths) {
  const auto& all = paths.gradients;
  return std::is_sorted(
             all.begin(), all.end(),
             [](const GradientPath& a, const GradientPath& b) { return a.copy_in < b.copy_in; }) &&
         std::all_of(all.begin(), all.end(),
                     [&](const GradientPath& g) { return g.copy_back > all.back().copy_in; });
}

}  // namespace

std::vector<std::size_t> GradientPaths::by_parameter(const OperationGraph& graph) const {
  std::map<std::uint32_t, std::size_t> of_copy;
  for (std::size_t i = 0; i < gradients.size(); ++i) of_copy[gradients[i].copy_back] = i;
  std::vector<std::size_t> order;
  for (const Operation& op : graph.operations) {
    if (op.phase != Phase::optimizer) continue;
    for (const std::uint32_t dep : op.device_deps) {
      const auto found = of_copy.find(dep);
      if (found == of_copy.end()) continue;
      order.push_back(found->second);
      of_copy.erase(found);
    }
  }
  if (!of_copy.empty()) order.clear();
  return order;
}

GradientPaths gradient_paths(const OperationGraph& graph) {
  GradientPaths paths = Reader(graph).read();
  return in_order(paths) ? paths : GradientPaths{};
}

}  // namespace bench::simulator
