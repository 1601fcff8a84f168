#include "bench/launch/mock_graph.hpp"

#include "bench/core/strategy.hpp"
#include "bench/launch/mock_worker.hpp"

#include <algorithm>

namespace bench::mock {
namespace {

using namespace simulator;

// A sample costs as many operations as make kernels of some milliseconds on common GPUs.
constexpr double kFlopsPerSample = 4e9;
constexpr std::uint64_t kBytesPerSample = 40'000'000;
constexpr std::int32_t kCommunicationStream = 1;

class Builder {
 public:
  explicit Builder(OperationGraph& graph) : graph_(graph) { graph_.host_threads = {"main"}; }

  Operation& add(OpKind kind, const char* name, Phase phase, std::int32_t device) {
    graph_.names.emplace_back(name);
    Operation op;
    op.kind = kind;
    op.phase = phase;
    op.device = device;
    op.name = static_cast<std::uint32_t>(graph_.names.size() - 1);
    graph_.operations.push_back(op);
    return graph_.operations.back();
  }

  std::uint32_t last() const { return static_cast<std::uint32_t>(graph_.operations.size() - 1); }

  std::uint32_t kernel(const char* name, Phase phase, std::int32_t device, double samples,
                       double weight) {
    Operation& op = add(OpKind::kernel, name, phase, device);
    op.flops = weight * samples * kFlopsPerSample;
    op.bytes_read = static_cast<std::uint64_t>(weight * samples * kBytesPerSample);
    op.bytes_written = op.bytes_read / 2;
    return last();
  }

  std::uint32_t copy(const char* name, Phase phase, std::int32_t from, std::int32_t to,
                     std::uint64_t bytes, std::vector<std::uint32_t> after) {
    Operation& op = add(OpKind::copy, name, phase, from);
    op.stream = kCommunicationStream;
    op.peer = to;
    op.bytes_moved = bytes;
    op.device_deps = std::move(after);
    return last();
  }

  void allocate(std::int32_t device, MemoryCategory category, std::uint64_t bytes,
                std::int64_t from, std::int64_t to) {
    graph_.allocations.push_back({device, category, bytes, from, to});
  }

 private:
  OperationGraph& graph_;
};

std::int64_t samples_on(const Case& work, int device) {
  const std::int64_t gpus = work.world_size();
  const std::int64_t chunk = (work.batch + gpus - 1) / gpus;
  return std::clamp<std::int64_t>(work.batch - device * chunk, 0, chunk);
}

void one_device(Builder& build, const Case& work, bool all_reduce) {
  const auto samples = static_cast<double>(samples_on(work, 0));
  const auto forward = build.kernel("aten::mm", Phase::forward, 0, samples, 1);
  const auto backward = build.kernel("aten::mm_backward", Phase::backward, 0, samples, 2);
  if (all_reduce) {
    Operation& op = build.add(OpKind::collective, "c10d::allreduce_", Phase::reduce, 0);
    op.collective = CollectiveKind::all_reduce;
    op.stream = kCommunicationStream;
    op.group = 1;
    op.across_ranks = true;
    op.bytes_moved = kParameterBytes;
    op.device_deps = {forward};  // overlaps backward, as buckets do
  }
  const auto before_step = build.last();
  Operation& step = build.add(OpKind::kernel, "aten::_foreach_add_", Phase::optimizer, 0);
  step.bytes_read = 2 * kParameterBytes;
  step.bytes_written = kParameterBytes;
  step.device_deps = {before_step};
  const auto end = build.last();
  build.allocate(0, MemoryCategory::parameters, kParameterBytes, kNone, kNone);
  build.allocate(0, MemoryCategory::gradients, kParameterBytes, backward, end);
  if (all_reduce) build.allocate(0, MemoryCategory::buckets, kParameterBytes, kNone, kNone);
  build.allocate(0, MemoryCategory::activations,
                 static_cast<std::uint64_t>(samples) * kActivationBytesPerSample, forward,
                 backward);
}

void data_parallel(Builder& build, const Case& work) {
  const int gpus = work.world_size();
  std::vector<std::uint32_t> gathered;
  std::vector<std::uint32_t> forwards;
  for (int device = 0; device < gpus; ++device) {
    const std::int64_t samples = samples_on(work, device);
    std::vector<std::uint32_t> ready;
    if (device > 0) {
      ready.push_back(build.copy("broadcast", Phase::broadcast, 0, device, kParameterBytes, {}));
      build.allocate(device, MemoryCategory::parameters, kParameterBytes, ready[0], kNone);
    }
    const auto forward =
        build.kernel("aten::mm", Phase::forward, device, static_cast<double>(samples), 1);
    forwards.push_back(forward);
    build.allocate(device, MemoryCategory::activations,
                   static_cast<std::uint64_t>(samples) * kActivationBytesPerSample, forward, kNone);
    const std::uint64_t output = static_cast<std::uint64_t>(samples) * kGatheredBytesPerSample;
    if (device == 0) continue;
    gathered.push_back(build.copy("gather", Phase::gather, device, 0, output, {forward}));
  }
  const auto loss = build.kernel("aten::loss", Phase::loss, 0, 1, 0.01);
  build.allocate(0, MemoryCategory::gathered_outputs,
                 static_cast<std::uint64_t>(work.batch) * kGatheredBytesPerSample, loss, kNone);
  build.allocate(0, MemoryCategory::parameters, kParameterBytes, kNone, kNone);
  build.allocate(0, MemoryCategory::gradients, kParameterBytes, loss, kNone);
  for (int device = 0; device < gpus; ++device) {
    const auto backward = build.kernel("aten::mm_backward", Phase::backward, device,
                                       static_cast<double>(samples_on(work, device)), 2);
    if (device == 0) continue;
    build.allocate(device, MemoryCategory::gradients, kParameterBytes, backward, kNone);
    build.copy("reduce", Phase::reduce, device, 0, kParameterBytes, {backward});
  }
}

}  // namespace

OperationGraph graph(const Case& work) {
  OperationGraph graph;
  graph.model = work.model.name;
  graph.strategy = strategy_name(work.strategy);
  graph.global_batch = work.batch;
  graph.parameter_count = static_cast<std::int64_t>(kParameterBytes / 4);
  graph.module_count = 3;
  const bool ddp = work.strategy == Strategy::distributed;
  graph.world_size = ddp ? work.world_size() : 1;
  graph.devices = ddp ? 1 : work.world_size();
  Builder build(graph);
  if (graph.devices == 1) {
    one_device(build, work, ddp && work.world_size() > 1);
  } else {
    data_parallel(build, work);
  }
  return graph;
}

}  // namespace bench::mock
