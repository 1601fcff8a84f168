#include "simulator/rebucket.hpp"

#include <algorithm>

namespace bench::simulator {
namespace {

constexpr std::uint64_t kBlock = 512;  // allocations are rounded to it

std::uint64_t rounded(std::uint64_t bytes) { return (bytes + kBlock - 1) / kBlock * kBlock; }

bool is_bucket(const Operation& op) {
  return op.kind == OpKind::collective && op.across_ranks &&
         op.collective == CollectiveKind::all_reduce && op.phase == Phase::reduce;
}

// A gradient's way through its bucket.
struct Gradient {
  std::uint32_t copy_in = 0;    // scaled into the bucket
  std::uint32_t copy_back = 0;  // and back after the reduction
  std::uint64_t bytes = 0;
};

class Reader {
 public:
  explicit Reader(const OperationGraph& graph) : graph_(graph) {}

  // In the order in which they become ready; empty when the recording is of another kind.
  std::vector<Gradient> gradients() {
    for (std::uint32_t i = 0; i < graph_.operations.size(); ++i) {
      if (is_bucket(graph_.operations[i]) && !add_bucket(i)) return {};
    }
    return std::move(gradients_);
  }

  const std::vector<std::uint32_t>& buckets() const { return buckets_; }

 private:
  bool named(const Operation& op, const char* name) const { return graph_.names[op.name] == name; }

  // What copies gradients back waits for the bucket on the device and comes in its order.
  std::vector<Gradient> copies_back(std::uint32_t bucket) const {
    std::vector<Gradient> copies;
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
    std::vector<Gradient> members = copies_back(bucket);
    std::uint64_t bytes = 0;
    for (const Gradient& member : members) bytes += member.bytes;
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
    gradients_.insert(gradients_.end(), members.begin(), members.end());
    buckets_.push_back(bucket);
    return true;
  }

  bool scales_into_bucket(const Operation& op, std::uint64_t bytes) const {
    return op.kind == OpKind::kernel && op.bytes_written == bytes && named(op, "aten::mul");
  }

  const OperationGraph& graph_;
  std::uint32_t first_free_ = 0;  // gradients of earlier buckets come before it
  std::vector<Gradient> gradients_;
  std::vector<std::uint32_t> buckets_;
};

class Editor {
 public:
  Editor(const OperationGraph& graph, const std::vector<Gradient>& gradients,
         const std::vector<std::uint32_t>& old_buckets)
      : graph_(graph), gradients_(gradients), old_(old_buckets), edited_(graph) {
    edited_.operations.clear();
    new_index_.assign(graph.operations.size(), 0);
    for (const Operation& op : graph.operations) next_group_ = std::max(next_group_, op.group + 1);
  }

  OperationGraph edit(const std::vector<std::size_t>& sizes) {
    std::size_t gradient = 0;
    std::size_t bucket = 0;
    std::size_t in_bucket = 0;
    for (std::uint32_t i = 0; i < graph_.operations.size(); ++i) {
      if (std::binary_search(old_.begin(), old_.end(), i)) continue;
      append(i);
      if (gradient == gradients_.size() || gradients_[gradient].copy_in != i) continue;
      ++gradient;
      if (++in_bucket < sizes[bucket]) continue;
      reduce(gradient - in_bucket, in_bucket);
      ++bucket;
      in_bucket = 0;
    }
    move_allocations();
    return std::move(edited_);
  }

 private:
  void append(std::uint32_t i) {
    Operation op = graph_.operations[i];
    const auto back = std::find_if(gradients_.begin(), gradients_.end(),
                                   [&](const Gradient& g) { return g.copy_back == i; });
    for (std::uint32_t& dep : op.device_deps) dep = moved(dep);
    for (std::uint32_t& dep : op.issue_deps) dep = moved(dep);
    if (back != gradients_.end()) {
      op.device_deps = {bucket_of_[static_cast<std::size_t>(back - gradients_.begin())]};
    }
    new_index_[i] = static_cast<std::uint32_t>(edited_.operations.size());
    edited_.operations.push_back(std::move(op));
  }

  // What waited for a reduction that is gone waits for the last one so far.
  std::uint32_t moved(std::uint32_t old) const {
    return std::binary_search(old_.begin(), old_.end(), old) ? last_reduction_ : new_index_[old];
  }

  void reduce(std::size_t first, std::size_t count) {
    Operation op = graph_.operations[old_.front()];
    op.group = next_group_++;
    op.bytes_moved = 0;
    for (std::size_t i = first; i < first + count; ++i) op.bytes_moved += gradients_[i].bytes;
    op.bytes_read = op.bytes_written = op.bytes_moved;
    op.device_deps = {static_cast<std::uint32_t>(edited_.operations.size() - 1)};
    op.issue_deps.clear();
    last_reduction_ = static_cast<std::uint32_t>(edited_.operations.size());
    bucket_of_.insert(bucket_of_.end(), count, last_reduction_);
    Allocation allocation;
    allocation.device = op.device;
    allocation.category = MemoryCategory::buckets;
    allocation.bytes = rounded(op.bytes_moved);
    new_buckets_.push_back(allocation);
    edited_.operations.push_back(std::move(op));
  }

  void move_allocations() {
    std::vector<std::uint64_t> old_bytes;
    for (const std::uint32_t i : old_)
      old_bytes.push_back(rounded(graph_.operations[i].bytes_moved));
    std::erase_if(edited_.allocations, [&](const Allocation& a) {
      if (a.category != MemoryCategory::buckets || a.alloc_op != kNone) return false;
      const auto found = std::find(old_bytes.begin(), old_bytes.end(), a.bytes);
      if (found == old_bytes.end()) return false;
      old_bytes.erase(found);
      return true;
    });
    for (Allocation& a : edited_.allocations) {
      if (a.alloc_op != kNone) a.alloc_op = moved(static_cast<std::uint32_t>(a.alloc_op));
      if (a.free_op != kNone) a.free_op = moved(static_cast<std::uint32_t>(a.free_op));
    }
    edited_.allocations.insert(edited_.allocations.end(), new_buckets_.begin(), new_buckets_.end());
  }

  const OperationGraph& graph_;
  const std::vector<Gradient>& gradients_;
  const std::vector<std::uint32_t>& old_;  // ascending
  OperationGraph edited_;
  std::vector<std::uint32_t> new_index_;
  std::vector<std::uint32_t> bucket_of_;  // reduction of each gradient, new index
  std::vector<Allocation> new_buckets_;
  std::uint32_t last_reduction_ = 0;
  std::uint32_t next_group_ = 1;
};

}  // namespace

std::vector<std::size_t> assign_buckets(const std::vector<std::uint64_t>& gradient_bytes,
                                        const BucketCaps& caps) {
  std::vector<std::size_t> sizes;
  std::uint64_t bytes = 0;
  std::size_t count = 0;
  for (const std::uint64_t gradient : gradient_bytes) {
    bytes += gradient;
    ++count;
    if (bytes < (sizes.empty() ? caps.first_bytes : caps.bytes)) continue;
    sizes.push_back(count);
    bytes = 0;
    count = 0;
  }
  if (count > 0) sizes.push_back(count);
  return sizes;
}

std::optional<OperationGraph> with_bucket_caps(const OperationGraph& graph,
                                               const BucketCaps& caps) {
  Reader reader(graph);
  const std::vector<Gradient> gradients = reader.gradients();
  if (gradients.empty()) return std::nullopt;
  const bool in_order =
      std::is_sorted(gradients.begin(), gradients.end(),
                     [](const Gradient& a, const Gradient& b) { return a.copy_in < b.copy_in; });
  const bool reduced_before_copies =
      std::all_of(gradients.begin(), gradients.end(),
                  [&](const Gradient& g) { return g.copy_back > gradients.back().copy_in; });
  if (!in_order || !reduced_before_copies) return std::nullopt;
  std::vector<std::uint64_t> bytes;
  for (const Gradient& gradient : gradients) bytes.push_back(gradient.bytes);
  return Editor(graph, gradients, reader.buckets()).edit(assign_buckets(bytes, caps));
}

}  // namespace bench::simulator
