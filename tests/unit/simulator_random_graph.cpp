#include "tests/unit/simulator_random_graph.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>

namespace bench::simulator {
namespace {

class GraphMaker {
 public:
  explicit GraphMaker(std::uint64_t seed) : random_(seed) {
    graph_.model = "random";
    graph_.names = {"", "aten::addmm", "aten::relu", "copy", "all_reduce", "replicate", "sync"};
  }

  OperationGraph make() {
    const bool distributed = below(2) == 0;
    graph_.strategy = distributed ? "distributed" : "data_parallel";
    graph_.devices = distributed ? 1 : 1 + below(4);
    graph_.world_size = distributed ? 1 << below(5) : 1;
    graph_.global_batch = 32;
    graph_.parameter_count = 1000;
    graph_.module_count = 10;
    graph_.host_threads.push_back("main");
    for (int i = 0; i < graph_.devices; ++i) {
      graph_.host_threads.push_back("replica:" + std::to_string(i));
    }
    const int size = 20 + below(180);
    while (static_cast<int>(graph_.operations.size()) < size) add_something();
    for (int i = 0; i < 30; ++i) add_allocation();
    return std::move(graph_);
  }

 private:
  int below(int limit) { return static_cast<int>(random_() % static_cast<std::uint64_t>(limit)); }

  // From 1 to 10^digits, every magnitude alike: most operations are small and some are huge.
  std::uint64_t magnitude(int digits) {
    const double exponent = static_cast<double>(random_() % 1000) / 1000.0 * digits;
    return static_cast<std::uint64_t>(std::pow(10.0, exponent));
  }

  std::vector<std::uint32_t> earlier() {
    std::vector<std::uint32_t> deps;
    const int size = static_cast<int>(graph_.operations.size());
    for (int i = below(3); i > 0 && size > 0; --i) {
      deps.push_back(static_cast<std::uint32_t>(size - 1 - below(std::min(size, 30))));
    }
    return deps;
  }

  Operation base(OpKind kind, std::uint32_t name) {
    Operation op;
    op.kind = kind;
    op.name = name;
    op.phase = static_cast<Phase>(below(kPhaseCount));
    op.host_thread = static_cast<std::uint32_t>(below(graph_.devices + 1));
    op.device_deps = earlier();
    op.issue_deps = earlier();
    return op;
  }

  void add_something() {
    const int choice = below(20);
    if (choice < 11) return add_kernel();
    if (choice < 15) return add_copy();
    if (choice < 17) return add_collective();
    if (choice < 19) return add_host();
    Operation op = base(OpKind::sync, 6);
    op.blocking = true;
    graph_.operations.push_back(op);
  }

  void add_kernel() {
    Operation op = base(OpKind::kernel, 1 + static_cast<std::uint32_t>(below(2)));
    op.device = below(graph_.devices);
    op.launches = static_cast<std::uint16_t>(1 + below(3));
    op.flops = static_cast<double>(magnitude(11));
    op.bytes_read = magnitude(8);
    op.bytes_written = magnitude(8);
    op.blocking = below(30) == 0;
    graph_.operations.push_back(op);
  }

  void add_copy() {
    Operation op = base(OpKind::copy, 3);
    op.device = below(graph_.devices + 1) - 1;
    op.peer = below(graph_.devices + 1) - 1;
    if (op.device == kNone && op.peer == kNone) op.peer = 0;
    op.stream = op.device == kNone ? 2 : (op.peer == kNone ? 3 : below(2));
    op.bytes_moved = magnitude(8);
    op.blocking = below(10) == 0;
    graph_.operations.push_back(op);
  }

  void add_collective() {
    Operation op = base(OpKind::collective, 4);
    op.stream = 1;
    op.bytes_moved = magnitude(8);
    if (graph_.strategy == "distributed") {
      op.device = 0;
      op.across_ranks = true;
      op.collective = CollectiveKind::all_reduce;
      op.group = ++groups_;
      graph_.operations.push_back(op);
      return;
    }
    op.group = ++groups_;
    op.root = 0;
    op.host_thread = 0;
    op.collective = below(2) == 0 ? CollectiveKind::broadcast : CollectiveKind::reduce;
    for (int device = 0; device < graph_.devices; ++device) {
      op.device = device;
      graph_.operations.push_back(op);
    }
  }

  void add_host() {
    Operation op = base(OpKind::host, 5);
    op.host_items = static_cast<std::uint32_t>(below(50));
    graph_.operations.push_back(op);
  }

  void add_allocation() {
    Allocation a;
    const int size = static_cast<int>(graph_.operations.size());
    a.device = below(graph_.devices);
    a.category = static_cast<MemoryCategory>(below(kMemoryCategoryCount));
    a.bytes = magnitude(7) * 512;
    a.alloc_op = below(size + 1) - 1;
    if (below(3) > 0) {
      a.free_op = std::max<std::int64_t>(a.alloc_op, 0) + below(10);
      a.free_op = std::min<std::int64_t>(a.free_op, size - 1);
    }
    graph_.allocations.push_back(a);
  }

  std::mt19937_64 random_;
  OperationGraph graph_;
  std::uint32_t groups_ = 0;
};

}  // namespace

OperationGraph random_graph(std::uint64_t seed) { return GraphMaker(seed).make(); }

}  // namespace bench::simulator
