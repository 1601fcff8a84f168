#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/frameworks/prepared.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/laboratory/trial_prices.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/ranks/launched_with.hpp"

#include <cmath>

namespace bench::pitfalls {

using diagnose::TrainingLoop;
using diagnose::Value;

namespace {

void tell_no_workers(const CallRef& loader, Ref workers, Report& report) {
  Finding& finding =
      as_in_trial(report.at(workers ? workers : loader.ref(), Confidence::check,
                            "the loader has no worker processes: the GPU waits while a batch is "
                            "made"),
                  "too-few");
  finding.severity = Severity::info;
  finding.help =
      "Set num_workers to the cores divided by the ranks of the node, and pin_memory=True.";
}

void tell_too_many(Ref workers, std::int64_t each, std::int64_t ranks, Report& report) {
  Finding& finding =
      as_in_trial(report.at(workers, Confidence::check,
                            std::to_string(each) + " workers in each of " + std::to_string(ranks) +
                                (ranks == 1 ? " process: " : " processes: ") +
                                std::to_string(ranks * each) + " loader processes on a node"),
                  "too-many");
  finding.severity = Severity::info;
  finding.help = "Divide the cores of the node by its ranks.";
}

// The first launch line by which there are too many decides.
void check_launches(const Program& program, Ref workers, Report& report) {
  constexpr std::int64_t kManyWorkers = 64;
  for (const auto& launch : program.launches()) {
    const auto ranks = launch.processes_per_node();
    const Value each = facts::value_in_launch(program, launch, workers);
    if (!ranks || !each.is_integer() || *ranks * each.integer <= kManyWorkers) continue;
    tell_too_many(workers, each.integer, *ranks, report);
    return;
  }
}

}  // namespace

void check_loader_oversubscription(const Program& program, Report& report) {
  // Accelerate may run as one process: only the launch line tells.
  const bool may_be_alone = !facts::is_distributed(program);
  if (may_be_alone && !makes_accelerator(program)) return;
  for (const TrainingLoop& loop : program.training_loops())
    for (const CallRef& loader : loaders_of(program, loop.iterable)) {
      const Ref workers = loader.argument(5, "num_workers");
      const Value value = program.evaluate(workers);
      if (!workers && loader.has_splat()) continue;
      const bool has_none =
          !workers || (value.is_integer() && value.integer == 0 && !value.is_default);
      if (!has_none)
        check_launches(program, workers, report);
      else if (!may_be_alone)
        tell_no_workers(loader, workers, report);
    }
}

namespace {

// Share of the training time spent waiting for samples.
double wait_share(const RunEvidence& run) {
  const double share = run.number("data_wait_seconds") / run.number("training_seconds");
  return std::isfinite(share) ? share : 0;
}

double workers_of_all_ranks(const RunEvidence& run) {
  double workers = 0;
  for (const double each : rank_values(run, "loader_workers")) workers += each;
  return workers;
}

// One worker for each rank is not too many, however few cores there are; and without their number
// (NaN) nobody can tell.
bool oversubscribed(const RunEvidence& run) {
  const auto ranks = static_cast<double>(rank_values(run, "loader_workers").size());
  const double workers = workers_of_all_ranks(run);
  return workers > ranks && workers > run.number("cores");
}

constexpr double kStarving = 0.3;

}  // namespace

void judge_loader_oversubscription(const RunEvidence& run, RunReport& report) {
  if (wait_share(run) > kStarving) {
    Finding& finding = report.add(
        Confidence::certain, figure(100 * wait_share(run)) +
                                 " % of the training time went into waiting for samples, with " +
                                 figure(run.number("loader_workers")) + " loader workers");
    finding.help = "Give each rank cores / ranks loader workers.";
    finding.evidence.emplace_back("seconds waited", figure(run.number("data_wait_seconds"), 3));
  }
  if (!oversubscribed(run)) return;
  Finding& finding = report.add(Confidence::certain,
                                figure(workers_of_all_ranks(run)) + " loader workers share " +
                                    figure(run.number("cores")) + " cores: a batch takes " +
                                    figure(1e3 * run.number("decode_seconds")) + " ms for " +
                                    figure(1e3 * run.number("decode_cpu_seconds")) + " ms of work");
  finding.help = "Workers = cores / ranks of the node.";
  finding.evidence.emplace_back("workers by rank", rank_figures(run, "loader_workers"));
}

Price price_loader_oversubscription(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  if (broken.first("cores") != nullptr) {
    const double slow = broken.number("decode_seconds");
    const double usual = cured.number("decode_seconds");
    price.reproduced = oversubscribed(broken) && slow > usual;
    price.gone = cured.first("cores") != nullptr && !oversubscribed(cured);
    price.cost = 1e3 * (slow - usual);
    price.unit = "ms longer per batch (" + figure(1e3 * slow) + " ms instead of " +
                 figure(1e3 * usual) + " ms)";
    price.seen = "silent: " + figure(workers_of_all_ranks(broken)) + " workers on " +
                 figure(broken.number("cores")) + " cores";
    return price;
  }
  price.reproduced = wait_share(broken) > kStarving;
  price.gone = cured.first("data_wait_seconds") != nullptr && wait_share(cured) <= kStarving;
  price.cost = 100 * wait_share(broken);
  price.unit = "% of the training time waiting for samples, instead of " +
               figure(100 * wait_share(cured)) + " %";
  price.seen = "silent: " + figure(broken.number("training_seconds"), 2) + " s instead of " +
               figure(cured.number("training_seconds"), 2) + " s for the same steps";
  return price;
}

}  // namespace bench::pitfalls
