#include "bench/micro/layered_graph.hpp"

#include <utility>

namespace bench::simulator {

OperationGraph layered_graph(int kernels, int world_size) {
  OperationGraph graph;
  graph.model = "layered";
  graph.strategy = world_size > 1 ? "distributed" : "single";
  graph.world_size = world_size;
  graph.names = {"", "aten::convolution", "c10d::allreduce_"};
  graph.host_threads = {"main", "backward:0"};
  std::vector<std::uint32_t> reduced;
  for (int i = 0; i < kernels; ++i) {
    Operation op;
    op.name = 1;
    op.device = 0;
    const int third = i * 3 / kernels;
    op.phase = third == 0 ? Phase::forward : third == 1 ? Phase::backward : Phase::optimizer;
    op.host_thread = third == 1 ? 1 : 0;
    if (i > 0 && graph.operations.back().host_thread != op.host_thread) {
      op.issue_deps = {static_cast<std::uint32_t>(graph.operations.size() - 1)};
    }
    if (third == 2) op.device_deps = std::exchange(reduced, {});
    op.flops = third == 2 ? 1e5 : 2e9;
    op.bytes_read = op.bytes_written = 4'000'000;
    graph.operations.push_back(op);
    if (third != 1 || world_size == 1 || i % 40 != 0) continue;
    Operation all_reduce;
    all_reduce.kind = OpKind::collective;
    all_reduce.collective = CollectiveKind::all_reduce;
    all_reduce.across_ranks = true;
    all_reduce.name = 2;
    all_reduce.device = 0;
    all_reduce.stream = 1;
    all_reduce.host_thread = 1;
    all_reduce.phase = Phase::reduce;
    all_reduce.bytes_moved = 25 << 20;
    all_reduce.device_deps = {static_cast<std::uint32_t>(graph.operations.size() - 1)};
    reduced.push_back(static_cast<std::uint32_t>(graph.operations.size()));
    graph.operations.push_back(all_reduce);
  }
  return graph;
}

}  // namespace bench::simulator
