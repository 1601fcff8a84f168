#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/laboratory/paired_loss.hpp"
#include "scenarios/pitfalls/laboratory/trial_prices.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Kind;
using diagnose::Source;

namespace {

bool says_total(std::string_view name) {
  const std::string plain = facts::lowered(name);
  return facts::contains(plain, "batch") &&
         (facts::contains(plain, "total") || facts::contains(plain, "global") ||
          facts::contains(plain, "effective"));
}

}  // namespace

void check_batch_size_not_divided(const Program& program, Report& report) {
  if (!facts::is_distributed(program) || program.framework_distributes()) return;
  for (const CallRef& loader : program.calls(Api::data_loader)) {
    const Ref batch = loader.argument(1, "batch_size");
    if (!batch || !sampler_of(program, loader)) continue;
    if (batch.kind() != Kind::identifier && batch.kind() != Kind::attribute &&
        batch.kind() != Kind::subscript)
      continue;
    if (!says_total(batch.text())) continue;
    bool computed = false;
    for (const Source& source : program.sources(batch))
      computed = computed || source.ref.kind() == Kind::binary;
    if (computed) continue;
    Finding& finding = report.at(batch, Confidence::likely,
                                 "a total batch size is given to every rank's loader: the global "
                                 "batch is world size times larger");
    finding.severity = Severity::warning;
    finding.help = "Divide it by the world size.";
  }
}

namespace {

double global_batch_of(const RunEvidence& run) {
  double batch = 0;
  for (const double each : rank_values(run, "rank_batch")) batch += each;
  return batch;
}

}  // namespace

void judge_batch_size_not_divided(const RunEvidence& run, RunReport& report) {
  const double meant = run.number("total_batch_meant");
  if (!(meant > 0) || global_batch_of(run) == meant) return;
  Finding& finding = report.add(Confidence::certain,
                                "the ranks' batches add up to " + figure(global_batch_of(run)) +
                                    " samples where " + figure(meant) + " were meant");
  finding.help = "Divide the total batch size by the world size.";
  finding.evidence.emplace_back("batch by rank", rank_figures(run, "rank_batch"));
}

Price price_batch_size_not_divided(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  const Interval lost = paired_loss(broken.first("accuracy"), cured.first("accuracy"));
  const double meant = broken.number("total_batch_meant");
  price.reproduced = global_batch_of(broken) > meant && lost.low > 0 &&
                     broken.number("epoch_steps") < cured.number("epoch_steps");
  price.gone = cured.first("rank_batch") != nullptr &&
               global_batch_of(cured) == cured.number("total_batch_meant");
  price.cost = 100 * lost.mean;
  price.unit = "accuracy points lost after one epoch (95 % interval " + figure(100 * lost.low, 2) +
               " to " + figure(100 * lost.high, 2) + ", " + std::to_string(lost.seeds) + " seeds)";
  price.seen = "silent: " + figure(broken.number("epoch_steps")) + " steps an epoch instead of " +
               figure(cured.number("epoch_steps"));
  return price;
}

}  // namespace bench::pitfalls
