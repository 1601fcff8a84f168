#include "bench/harness/anchor_to_measurement.hpp"

#include "bench/core/error.hpp"
#include "bench/core/strategy.hpp"
#include "simulator/graph_io.hpp"

#include <string>

namespace bench {
namespace {

constexpr double kNsPerMs = 1e6;

}  // namespace

const Case& measured_case(const Plan& plan) {
  const Case* found = nullptr;
  int count = 0;
  for (const PlannedCase& planned : plan.cases) {
    const Case& work = planned.work;
    if (work.strategy != Strategy::single || work.reference_only || planned.search) continue;
    found = &work;
    ++count;
  }
  if (count == 1) return *found;
  throw UsageError(
      "--measured-single: expected a plan with one single-device case, which the measurement is "
      "of; this one has " +
      std::to_string(count) + ": choose one --model and one --batch, with strategy single");
}

simulator::Anchor anchor_to_measurement(const Plan& plan, double step_ms, const JobRunner& runner,
                                        const std::filesystem::path& directory) {
  Job job;
  job.kind = JobKind::record;
  job.work = measured_case(plan);
  std::filesystem::create_directories(directory);
  job.graph_file = (directory / "anchor.graph").string();
  const JobOutcome outcome = runner.run(job, "anchor");
  if (outcome.status != RankStatus::ok) {
    throw MachineError("--measured-single: the single-device step cannot be recorded: " +
                       outcome.message);
  }
  simulator::SimulationOptions options;
  options.gpus = job.work.gpus;
  options.host = job.work.host;
  options.seed = job.work.seed;
  const auto graph = simulator::read_graph(job.graph_file);
  std::filesystem::remove(job.graph_file);
  return simulator::anchor_to_single(graph, simulator::load_machine(job.work.machine), options,
                                     step_ms * kNsPerMs);
}

}  // namespace bench
