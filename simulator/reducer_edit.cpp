#include "simulator/reducer_edit.hpp"

#include "simulator/allocation_order.hpp"
#include "simulator/gradient_paths.hpp"

#include <algorithm>
#include <numeric>

namespace bench::simulator {
namespace {

constexpr std::uint64_t kBlock = 512;        // allocations are rounded to it
constexpr std::uint64_t kUsedFlagBytes = 4;  // of each parameter, in the Reducer's map
constexpr std::int32_t kHostToDevice = 2;    // stream
constexpr std::uint32_t kNowhere = 0xffffffffU;

std::uint64_t rounded(std::uint64_t bytes) { return (bytes + kBlock - 1) / kBlock * kBlock; }

// Positions of the gradients of one bucket, in the order in which they are copied back.
using Bucket = std::vector<std::size_t>;

// The model's output, where a copy of it is what the loss reads.
struct Output {
  std::uint32_t made_by = kNowhere;
  std::size_t allocation = 0;
};

// Rebuilt after the first step in the order in which gradients became ready.
std::vector<Bucket> rebuilt_buckets(const GradientPaths& paths, const BucketCaps& caps) {
  std::vector<std::uint64_t> bytes;
  for (const GradientPath& gradient : paths.gradients) bytes.push_back(gradient.bytes);
  std::vector<Bucket> buckets;
  std::size_t first = 0;
  for (const std::size_t size : assign_buckets(bytes, caps)) {
    buckets.emplace_back(size);
    std::iota(buckets.back().begin(), buckets.back().end(), first);
    first += size;
  }
  return buckets;
}

// Never rebuilt where the Reducer looks for unused parameters: filled in the order of the
// parameters, reduced in the reverse.
std::vector<Bucket> initial_buckets(const GradientPaths& paths,
                                    const std::vector<std::size_t>& by_parameter,
                                    const BucketCaps& caps) {
  std::vector<std::uint64_t> bytes;
  for (const std::size_t gradient : by_parameter) bytes.push_back(paths.gradients[gradient].bytes);
  std::vector<Bucket> buckets;
  auto at = by_parameter.begin();
  for (const std::size_t size : assign_buckets(bytes, caps)) {
    const auto end = at + static_cast<std::ptrdiff_t>(size);
    buckets.emplace_back(at, end);
    at = end;
  }
  std::reverse(buckets.begin(), buckets.end());
  return buckets;
}

// What the forward pass made last, if it lives until the optimizer begins and nothing but the
// loss reads it.
std::optional<Output> output_of(const OperationGraph& graph) {
  Output output;
  std::int64_t optimizer = kNone;
  for (std::uint32_t i = 0; i < graph.operations.size(); ++i) {
    const Operation& op = graph.operations[i];
    if (op.phase == Phase::forward) output.made_by = i;
    if (op.phase == Phase::optimizer && optimizer == kNone) optimizer = i;
    if (op.phase == Phase::forward || op.phase == Phase::loss) continue;
    const auto& deps = op.device_deps;
    if (std::find(deps.begin(), deps.end(), output.made_by) != deps.end()) return std::nullopt;
  }
  int found = 0;
  for (std::size_t i = 0; i < graph.allocations.size(); ++i) {
    const Allocation& a = graph.allocations[i];
    if (a.alloc_op != output.made_by || a.free_op != optimizer) continue;
    output.allocation = i;
    ++found;
  }
  const bool whole = found == 1 && graph.allocations[output.allocation].bytes ==
                                       rounded(graph.operations[output.made_by].bytes_written);
  return whole ? std::optional(output) : std::nullopt;
}

class Editor {
 public:
  Editor(const OperationGraph& graph, const GradientPaths& paths, std::vector<Bucket> buckets,
         const ReducerOptions& options, std::optional<Output> output)
      : graph_(graph),
        paths_(paths),
        buckets_(std::move(buckets)),
        options_(options),
        output_(output),
        edited_(graph) {
    edited_.operations.clear();
    edited_.allocations.clear();
    new_index_.assign(graph.operations.size(), kNowhere);
    of_copy_in_.assign(graph.operations.size(), kNowhere);
    of_copy_back_.assign(graph.operations.size(), kNowhere);
    for (std::uint32_t i = 0; i < paths.gradients.size(); ++i) {
      of_copy_in_[paths.gradients[i].copy_in] = i;
      of_copy_back_[paths.gradients[i].copy_back] = i;
    }
    copied_in_.assign(paths.gradients.size(), kNowhere);
    copied_back_.assign(paths.gradients.size(), kNowhere);
    reduced_by_.assign(paths.gradients.size(), kNowhere);
    hook_ended_.assign(paths.gradients.size(), kNowhere);
    for (const Bucket& bucket : buckets_) {
      back_order_.insert(back_order_.end(), bucket.begin(), bucket.end());
    }
    for (const Operation& op : graph.operations) {
      if (op.phase != Phase::reduce) next_group_ = std::max(next_group_, op.group + 1);
    }
  }

  OperationGraph edit() {
    for (std::uint32_t i = 0; i < graph_.operations.size(); ++i) {
      if (std::binary_search(paths_.buckets.begin(), paths_.buckets.end(), i)) continue;
      if (of_copy_back_[i] != kNowhere) {
        copy_back();
        continue;
      }
      append(i);
      if (of_copy_in_[i] != kNowhere) gradient_is_ready(of_copy_in_[i]);
      if (output_ && output_->made_by == i) copy_output();
    }
    move_allocations();
    return std::move(edited_);
  }

 private:
  std::uint32_t end() const { return static_cast<std::uint32_t>(edited_.operations.size()); }

  std::uint32_t add(Operation op) {
    edited_.operations.push_back(std::move(op));
    return end() - 1;
  }

  void append(std::uint32_t i) {
    Operation op = graph_.operations[i];
    for (std::uint32_t& dep : op.device_deps) dep = moved(dep);
    for (std::uint32_t& dep : op.issue_deps) dep = issued_after(dep);
    if (options_.gradient_as_bucket_view) {
      std::sort(op.device_deps.begin(), op.device_deps.end());
      const auto unique = std::unique(op.device_deps.begin(), op.device_deps.end());
      op.device_deps.erase(unique, op.device_deps.end());
    }
    new_index_[i] = add(std::move(op));
  }

  // What waited for a gradient's copy back waits for its reduction where there is no copy; what
  // waited for a reduction that is gone waits for the last one so far.
  std::uint32_t moved(std::uint32_t old) const {
    const std::uint32_t gradient = of_copy_back_[old];
    if (gradient != kNowhere) {
      return options_.gradient_as_bucket_view ? reduced_by_[gradient] : copied_back_[gradient];
    }
    return new_index_[old] == kNowhere ? last_reduction_ : new_index_[old];
  }

  // The thread that issued a copy has come at least as far.
  std::uint32_t issued_after(std::uint32_t old) const {
    const bool copy = of_copy_back_[old] != kNowhere;
    return copy ? last_of_reducer_ : moved(old);
  }

  void copy_back() {
    if (options_.gradient_as_bucket_view) return;
    const std::size_t gradient = back_order_[next_back_++];
    Operation op = graph_.operations[paths_.gradients[gradient].copy_back];
    op.device_deps = {reduced_by_[gradient]};
    for (std::uint32_t& dep : op.issue_deps) dep = issued_after(dep);
    last_of_reducer_ = copied_back_[gradient] = add(std::move(op));
  }

  // Buckets are reduced in their order, each as soon as it and those before it are full.
  void gradient_is_ready(std::uint32_t gradient) {
    copied_in_[gradient] = end() - 1;
    auto ready = [&](std::size_t g) { return copied_in_[g] != kNowhere; };
    while (next_bucket_ < buckets_.size() &&
           std::all_of(buckets_[next_bucket_].begin(), buckets_[next_bucket_].end(), ready)) {
      reduce(buckets_[next_bucket_++]);
      if (next_bucket_ == buckets_.size() && searches()) reduce_used_map();
    }
    hook_ended_[gradient] = end();
  }

  void reduce(const Bucket& bucket) {
    Operation op = graph_.operations[paths_.buckets.front()];
    op.group = next_group_++;
    op.bytes_moved = 0;
    std::uint32_t filled_by = 0;
    for (const std::size_t gradient : bucket) {
      op.bytes_moved += paths_.gradients[gradient].bytes;
      filled_by = std::max(filled_by, copied_in_[gradient]);
      reduced_by_[gradient] = end();
    }
    op.bytes_read = op.bytes_written = op.bytes_moved;
    op.device_deps = {filled_by};
    op.issue_deps.clear();
    keep_bytes(
        options_.gradient_as_bucket_view ? MemoryCategory::gradients : MemoryCategory::buckets,
        op.bytes_moved);
    last_of_reducer_ = last_reduction_ = add(std::move(op));
  }

  bool searches() const { return output_.has_value(); }

  // Which parameters were used on any rank: one flag each, from the host.
  void reduce_used_map() {
    const std::uint64_t bytes = kUsedFlagBytes * paths_.gradients.size();
    Operation reduction = edited_.operations[last_reduction_];
    reduction.dtype = DType::int32;
    reduction.bytes_read = reduction.bytes_written = reduction.bytes_moved = bytes;
    reduction.group = next_group_++;
    Operation copy;
    copy.kind = OpKind::copy;
    copy.phase = Phase::backward;
    copy.dtype = DType::int32;
    copy.name = graph_.operations[paths_.gradients.front().copy_back].name;
    copy.stream = kHostToDevice;
    copy.peer = reduction.device;
    copy.host_thread = reduction.host_thread;
    copy.bytes_read = copy.bytes_written = copy.bytes_moved = bytes;
    reduction.device_deps = {add(std::move(copy))};
    last_of_reducer_ = add(std::move(reduction));
    keep_bytes(MemoryCategory::buckets, bytes);
  }

  void copy_output() {
    const Operation& output = graph_.operations[output_->made_by];
    Operation copy;
    copy.phase = Phase::forward;
    copy.dtype = output.dtype;
    copy.name = graph_.operations[paths_.gradients.front().copy_back].name;
    copy.device = output.device;
    copy.host_thread = output.host_thread;
    copy.bytes_read = copy.bytes_written = output.bytes_written;
    Allocation allocation = graph_.allocations[output_->allocation];
    allocation.alloc_op = add(std::move(copy));
    copied_output_ = allocation;
  }

  // Memory that lives from step to step.
  void keep_bytes(MemoryCategory category, std::uint64_t bytes) {
    Allocation allocation;
    allocation.device = graph_.operations[paths_.buckets.front()].device;
    allocation.category = category;
    allocation.bytes = rounded(bytes);
    edited_.allocations.push_back(allocation);
  }

  void move_allocations() {
    std::vector<Allocation> old = graph_.allocations;
    if (searches()) {
      copied_output_.free_op = position(copied_output_.free_op);
      edited_.allocations.push_back(copied_output_);
      old[output_->allocation].free_op = output_->made_by + 1;
    }
    if (options_.static_graph) {
      keep_bytes(MemoryCategory::activations, kUsedFlagBytes * paths_.gradients.size());
    }
    drop_buckets(old);
    for (Allocation& a : old) {
      a.alloc_op = position(a.alloc_op);
      a.free_op = position(a.free_op);
    }
    if (options_.gradient_as_bucket_view) free_gradients(old);
    edited_.allocations.insert(edited_.allocations.end(), old.begin(), old.end());
    sort_allocations(edited_.allocations);
  }

  void drop_buckets(std::vector<Allocation>& allocations) const {
    std::vector<std::uint64_t> old_bytes;
    for (const std::uint32_t i : paths_.buckets) {
      old_bytes.push_back(rounded(graph_.operations[i].bytes_moved));
    }
    std::erase_if(allocations, [&](const Allocation& a) {
      if (a.category != MemoryCategory::buckets || a.alloc_op != kNone) return false;
      const auto found = std::find(old_bytes.begin(), old_bytes.end(), a.bytes);
      if (found == old_bytes.end()) return false;
      old_bytes.erase(found);
      return true;
    });
  }

  // An operation, or what comes in the place of one that is gone.
  std::int64_t position(std::int64_t old) const {
    if (old == kNone) return kNone;
    for (auto i = static_cast<std::size_t>(old); i < new_index_.size(); ++i) {
      if (new_index_[i] != kNowhere) return new_index_[i];
      if (of_copy_back_[i] != kNowhere && !options_.gradient_as_bucket_view) {
        return copied_back_[of_copy_back_[i]];
      }
    }
    return kNone;
  }

  // A gradient that is copied into its bucket is given back at once, and nothing of it is left
  // for the next step to free.
  void free_gradients(std::vector<Allocation>& allocations) const {
    std::erase_if(allocations, [](const Allocation& a) {
      return a.category == MemoryCategory::gradients && a.alloc_op == kNone && a.free_op != kNone;
    });
    for (std::size_t i = 0; i < paths_.gradients.size(); ++i) {
      Allocation* made = nullptr;
      for (Allocation& a : allocations) {
        const bool candidate = a.category == MemoryCategory::gradients && a.free_op == kNone &&
                               a.alloc_op != kNone && a.alloc_op < copied_in_[i] &&
                               a.bytes == rounded(paths_.gradients[i].bytes);
        if (candidate && (made == nullptr || a.alloc_op > made->alloc_op)) made = &a;
      }
      if (made != nullptr) made->free_op = hook_ended_[i];
    }
  }

  const OperationGraph& graph_;
  const GradientPaths& paths_;
  const std::vector<Bucket> buckets_;
  const ReducerOptions& options_;
  const std::optional<Output> output_;  // where unused parameters are looked for
  OperationGraph edited_;
  std::vector<std::uint32_t> new_index_;  // by old operation
  std::vector<std::uint32_t> of_copy_in_;
  std::vector<std::uint32_t> of_copy_back_;
  std::vector<std::uint32_t> copied_in_;  // by gradient, new operation
  std::vector<std::uint32_t> copied_back_;
  std::vector<std::uint32_t> reduced_by_;
  std::vector<std::uint32_t> hook_ended_;
  std::vector<std::size_t> back_order_;
  Allocation copied_output_;
  std::size_t next_back_ = 0;
  std::size_t next_bucket_ = 0;
  std::uint32_t last_reduction_ = 0;
  std::uint32_t last_of_reducer_ = 0;
  std::uint32_t next_group_ = 1;
};

bool micro_batches(const OperationGraph& graph) {
  int losses = 0;
  Phase before = Phase::other;
  for (const Operation& op : graph.operations) {
    if (op.phase == Phase::loss && before != Phase::loss) ++losses;
    before = op.phase;
  }
  return losses != 1;
}

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

std::optional<OperationGraph> with_reducer_options(const OperationGraph& graph,
                                                   const ReducerOptions& options) {
  const GradientPaths paths = gradient_paths(graph);
  if (paths.empty()) return std::nullopt;
  const bool searches = options.find_unused_parameters && !options.static_graph;
  const bool only_caps = !searches && !options.gradient_as_bucket_view && !options.static_graph;
  if (!only_caps && micro_batches(graph)) return std::nullopt;
  if (!searches) {
    return Editor(graph, paths, rebuilt_buckets(paths, options.caps), options, {}).edit();
  }
  const auto by_parameter = paths.by_parameter(graph);
  const auto output = output_of(graph);
  if (by_parameter.empty() || !output) return std::nullopt;
  return Editor(graph, paths, initial_buckets(paths, by_parameter, options.caps), options, output)
      .edit();
}

}  // namespace bench::simulator
