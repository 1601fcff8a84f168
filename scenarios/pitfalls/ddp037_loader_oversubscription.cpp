#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"
#include "scenarios/pitfalls/loaders.hpp"

namespace bench::pitfalls {

using diagnose::TrainingLoop;
using diagnose::Value;

void check_loader_oversubscription(const Program& program, Report& report) {
  constexpr std::int64_t kManyWorkers = 64;
  if (!facts::is_distributed(program)) return;
  for (const TrainingLoop& loop : program.training_loops())
    for (const CallRef& loader : loaders_of(program, loop.iterable)) {
      const Ref workers = loader.argument(5, "num_workers");
      const Value value = program.evaluate(workers);
      if (!workers || (value.is_integer() && value.integer == 0 && !value.is_default)) {
        if (!workers && loader.has_splat()) continue;
        Finding& finding =
            report.at(workers ? workers : loader.ref(), Confidence::check,
                      "the loader has no worker processes: the GPU waits while a batch is made");
        finding.severity = Severity::info;
        finding.help =
            "Set num_workers to the cores divided by the ranks of the node, and pin_memory=True.";
        continue;
      }
      for (const auto& launch : program.launches()) {
        const auto ranks = launch.processes_per_node();
        if (!ranks || !value.is_integer() || *ranks * value.integer <= kManyWorkers) continue;
        Finding& finding = report.at(workers, Confidence::check,
                                     std::to_string(value.integer) + " workers in each of " +
                                         std::to_string(*ranks) +
                                         " processes: " + std::to_string(*ranks * value.integer) +
                                         " loader processes on a node");
        finding.severity = Severity::info;
        finding.help = "Divide the cores of the node by its ranks.";
        break;
      }
    }
}

}  // namespace bench::pitfalls
