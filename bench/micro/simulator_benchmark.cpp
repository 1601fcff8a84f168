// How fast the simulator is: events per second on a graph of a ResNet-50's size, and what a
// prediction costs beside it (machine description, graph from disk).
#include "bench/micro/layered_graph.hpp"
#include "simulator/graph_io.hpp"
#include "simulator/simulate.hpp"

#include <benchmark/benchmark.h>

namespace bench::simulator {
namespace {

constexpr int kResNet50Operations = 900;

void report_events(benchmark::State& state, std::uint64_t events) {
  state.counters["events_per_second"] =
      benchmark::Counter(static_cast<double>(events), benchmark::Counter::kIsRate);
}

void simulate_step(benchmark::State& state, bool keep_intervals) {
  const auto ranks = static_cast<int>(state.range(0));
  const OperationGraph graph = layered_graph(kResNet50Operations, ranks);
  const Machine machine = load_machine("128xdgx-a100");
  SimulationOptions options;
  options.keep_intervals = keep_intervals;
  std::uint64_t events = 0;
  for (auto _ : state) {
    const SimulationResult result = simulate(graph, machine, options);
    benchmark::DoNotOptimize(result.timeline.step_ns);
    events += result.events;
  }
  report_events(state, events);
}

void SimulateStep(benchmark::State& state) { simulate_step(state, false); }
void SimulateStepWithTimeline(benchmark::State& state) { simulate_step(state, true); }
BENCHMARK(SimulateStep)->Arg(1)->Arg(8)->Arg(1024)->Unit(benchmark::kMicrosecond);
BENCHMARK(SimulateStepWithTimeline)->Arg(8)->Unit(benchmark::kMicrosecond);

void SimulateLongGraph(benchmark::State& state) {
  const OperationGraph graph = layered_graph(100 * kResNet50Operations, 8);
  const Machine machine = load_machine("dgx-a100");
  SimulationOptions options;
  options.keep_intervals = false;
  std::uint64_t events = 0;
  for (auto _ : state) events += simulate(graph, machine, options).events;
  report_events(state, events);
}
BENCHMARK(SimulateLongGraph)->Unit(benchmark::kMillisecond);

void LoadMachine(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(load_machine("16xdgx-a100").gpu_count());
}
BENCHMARK(LoadMachine)->Unit(benchmark::kMicrosecond);

void ReadGraph(benchmark::State& state) {
  const std::string bytes = encode_graph(layered_graph(kResNet50Operations, 8));
  for (auto _ : state) benchmark::DoNotOptimize(decode_graph(bytes, "graph").operations.size());
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * bytes.size()));
}
BENCHMARK(ReadGraph)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace bench::simulator

BENCHMARK_MAIN();
