#include "simulator/what_if.hpp"

#include <array>
#include <string_view>

namespace bench::simulator {
namespace {

constexpr const char* kPrecisionNames[] = {"float32", "tf32", "float16", "bfloat16"};
constexpr const char* kHookNames[] = {"none", "fp16_compress", "bf16_compress"};
constexpr std::uint64_t kFloatBytes = 4;
constexpr std::uint64_t kHalfBytes = 2;

template <class E, std::size_t N>
std::optional<E> value_of(const char* const (&names)[N], const std::string& text) {
  for (std::size_t i = 0; i < N; ++i) {
    if (text == names[i]) return static_cast<E>(i);
  }
  return std::nullopt;
}

// Operators on autocast's list of what runs in 16 bits; they multiply matrices.
bool is_product(std::string_view name) {
  constexpr std::array kNames{"conv", "addmm", "::mm", "bmm", "matmul", "linear", "attention"};
  for (const std::string_view part : kNames) {
    if (name.find(part) != std::string_view::npos) return true;
  }
  return false;
}

bool in_autocast(Phase phase) { return phase == Phase::forward || phase == Phase::backward; }

bool is_bucket(const Operation& op) {
  return op.kind == OpKind::collective && op.across_ranks &&
         op.collective == CollectiveKind::all_reduce && op.dtype == DType::float32;
}

// Builds a graph in which operations of the old one are preceded or followed by new ones.
class Rebuilder {
 public:
  explicit Rebuilder(const OperationGraph& graph) : edited_(graph) {
    edited_.operations.clear();
    new_index_.assign(graph.operations.size(), 0);
  }

  std::uint32_t name(const char* text) {
    edited_.names.emplace_back(text);
    return static_cast<std::uint32_t>(edited_.names.size() - 1);
  }

  std::uint32_t append(Operation op) {
    edited_.operations.push_back(std::move(op));
    return static_cast<std::uint32_t>(edited_.operations.size() - 1);
  }

  // The old operation with its dependencies as they are now; what waits for old operation `index`
  // will wait for `set_end(index, ...)`.
  Operation moved(const Operation& op) const {
    Operation copy = op;
    for (std::uint32_t& dep : copy.device_deps) dep = new_index_[dep];
    for (std::uint32_t& dep : copy.issue_deps) dep = new_index_[dep];
    return copy;
  }
  void set_end(std::size_t index, std::uint32_t end) { new_index_[index] = end; }

  OperationGraph take() {
    for (Allocation& allocation : edited_.allocations) {
      if (allocation.alloc_op != kNone) allocation.alloc_op = new_index_[allocation.alloc_op];
      if (allocation.free_op != kNone) allocation.free_op = new_index_[allocation.free_op];
    }
    return std::move(edited_);
  }

 private:
  OperationGraph edited_;
  std::vector<std::uint32_t> new_index_;
};

Operation cast_kernel(const Operation& bucket, std::uint32_t name, std::uint64_t elements,
                      bool narrow) {
  Operation cast;
  cast.kind = OpKind::kernel;
  cast.phase = bucket.phase;
  cast.name = name;
  cast.device = bucket.device;
  cast.host_thread = bucket.host_thread;
  cast.dtype = DType::float32;
  cast.bytes_read = elements * (narrow ? kFloatBytes : kHalfBytes);
  cast.bytes_written = elements * (narrow ? kHalfBytes : kFloatBytes);
  return cast;
}

OperationGraph with_tf32(const OperationGraph& graph) {
  OperationGraph edited = graph;
  for (Operation& op : edited.operations) {
    const bool applies =
        op.kind == OpKind::kernel && op.dtype == DType::float32 && is_product(graph.names[op.name]);
    if (applies) op.dtype = DType::tfloat32;
  }
  return edited;
}

}  // namespace

const char* precision_name(Precision precision) {
  return kPrecisionNames[static_cast<int>(precision)];
}
std::optional<Precision> parse_precision(const std::string& text) {
  return value_of<Precision>(kPrecisionNames, text);
}
const char* bucket_hook_name(BucketHook hook) { return kHookNames[static_cast<int>(hook)]; }
std::optional<BucketHook> parse_bucket_hook(const std::string& text) {
  return value_of<BucketHook>(kHookNames, text);
}

OperationGraph with_precision(const OperationGraph& graph, Precision precision) {
  if (precision == Precision::float32) return graph;
  if (precision == Precision::tf32) return with_tf32(graph);
  OperationGraph edited = graph;
  const DType half = precision == Precision::float16 ? DType::float16 : DType::bfloat16;
  for (Operation& op : edited.operations) {
    const bool applies =
        op.kind == OpKind::kernel && op.dtype == DType::float32 && in_autocast(op.phase);
    if (!applies) continue;
    op.bytes_read /= 2;
    op.bytes_written /= 2;
    if (!is_product(graph.names[op.name])) continue;
    op.dtype = half;
    if (op.phase == Phase::forward) ++op.launches;  // the cast of its weight
  }
  for (Allocation& allocation : edited.allocations) {
    if (allocation.category == MemoryCategory::activations) allocation.bytes /= 2;
  }
  return edited;
}

OperationGraph with_bucket_hook(const OperationGraph& graph, BucketHook hook) {
  if (hook == BucketHook::none) return graph;
  Rebuilder rebuilt(graph);
  const std::uint32_t narrow = rebuilt.name("hook::to_16_bits");
  const std::uint32_t widen = rebuilt.name("hook::to_float32");
  for (std::size_t i = 0; i < graph.operations.size(); ++i) {
    Operation op = rebuilt.moved(graph.operations[i]);
    if (!is_bucket(op)) {
      rebuilt.set_end(i, rebuilt.append(std::move(op)));
      continue;
    }
    const std::uint64_t elements = op.bytes_moved / kFloatBytes;
    Operation cast = cast_kernel(op, narrow, elements, true);
    cast.stream = 0;
    cast.device_deps = op.device_deps;
    cast.issue_deps = op.issue_deps;
    Operation back = cast_kernel(op, widen, elements, false);
    back.stream = op.stream;
    op.device_deps.push_back(rebuilt.append(std::move(cast)));
    op.bytes_moved = elements * kHalfBytes;
    op.dtype = hook == BucketHook::fp16_compress ? DType::float16 : DType::bfloat16;
    back.device_deps = {rebuilt.append(std::move(op))};
    rebuilt.set_end(i, rebuilt.append(std::move(back)));
  }
  return rebuilt.take();
}

}  // namespace bench::simulator
