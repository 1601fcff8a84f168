// record: warm up on virtual GPUs until a step is like every later one, then record one step as an
// operation graph for the simulator.
#include "bench/core/strategy.hpp"
#include "simulator/graph_io.hpp"

#include "training/devices/memory_ledger.hpp"
#include "training/devices/recorder.hpp"
#include "training/devices/vgpu_process_group.hpp"
#include "training/jobs/job_runner.hpp"

#include <chrono>

namespace bench::training {
namespace {

// The optimizer's state exists after one step, and DistributedDataParallel rebuilds its buckets at
// the start of the second; with a static graph at the start of the third. One more settles memory.
int warm_up_steps(const Case& work) {
  return work.strategy == Strategy::distributed && work.ddp.static_graph ? 4 : 3;
}

// Labels recorded operations with the phase they belong to.
class RecordPhases final : public PhaseSink {
 public:
  void enter(Phase phase) override {
    scope_.reset();
    scope_.emplace(phase);
  }

 private:
  std::optional<PhaseScope> scope_;
};

void describe(const Job& job, const Placement& placement, const Trainer& trainer,
              simulator::OperationGraph& graph) {
  graph.model = job.work.model.name;
  graph.strategy = strategy_name(job.work.strategy);
  graph.global_batch = job.work.batch;
  graph.devices = static_cast<std::int32_t>(placement.devices.size());
  graph.world_size = placement.world_size;
  graph.rank = placement.rank;
  graph.parameter_count = 0;
  for (const auto& parameter : trainer.parameters()) graph.parameter_count += parameter.numel();
  graph.module_count = trainer.model().module_count();
}

void report_memory(const Case& work, const Placement& placement,
                   const simulator::OperationGraph& graph, RankReport& report) {
  for (std::int32_t device = 0; device < graph.devices; ++device) {
    const auto peak = graph.peak_memory(device);
    DeviceMemory memory;
    memory.device = work.gpus.at(static_cast<std::size_t>(placement.rank + device));
    memory.peak_bytes = peak.bytes;
    for (int i = 0; i < simulator::kMemoryCategoryCount; ++i) {
      const auto category = static_cast<simulator::MemoryCategory>(i);
      memory.by_category[memory_category_name(category)] = peak.by_category[i];
    }
    report.memory.push_back(std::move(memory));
  }
}

}  // namespace

void run_recording(const Job& job, Placement placement, JobContext& context, RankReport& report) {
  TrainerOptions options;
  const bool shapes = job.work.execute == Execute::shape;
  options.init = shapes ? Init::none : Init::seeded;
  Trainer trainer(job.work, placement, options);
  IgnorePhases ignore;
  context.channel().phase("warm-up");
  for (int step = 0; step < warm_up_steps(job.work); ++step) {
    trainer.step(ignore);
    context.channel().heartbeat();
  }
  context.channel().phase("recorded step");
  const auto bytes_before = bytes_communicated();
  start_recording();
  simulator::OperationGraph graph;
  {
    RecordPhases phases;
    trainer.step(phases);
  }
  graph = stop_recording();
  describe(job, placement, trainer, graph);
  report.counters = trainer.counters();
  if (job.work.strategy == Strategy::distributed) {
    report.counters["bytes_communicated"] =
        static_cast<double>(bytes_communicated() - bytes_before);
  }
  report.counters["graph_operations"] = static_cast<double>(graph.operations.size());
  report_memory(job.work, placement, graph, report);
  if (placement.rank == 0) simulator::write_graph(graph, job.graph_file);
}

}  // namespace bench::training
