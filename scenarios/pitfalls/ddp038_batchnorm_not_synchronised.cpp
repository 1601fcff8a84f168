#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/laboratory/trial_prices.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::TrainingLoop;
using diagnose::Wrap;
using diagnose::Wrapper;

void check_batchnorm_not_synchronised(const Program& program, Report& report) {
  constexpr std::int64_t kSmallBatch = 8;
  if (program.uses(Api::convert_sync_batch_norm) || program.mentions("sync_batchnorm")) return;
  for (const Wrap& wrap : program.wraps()) {
    if (wrap.kind != Wrapper::ddp || !facts::has_batch_norm(program, wrap)) continue;
    for (const TrainingLoop& loop : program.training_loops())
      for (const CallRef& loader : loaders_of(program, loop.iterable)) {
        const auto batch = program.integer(loader.argument(1, "batch_size"));
        if (!batch || *batch > kSmallBatch) continue;
        as_in_trial(report.at(loader.argument(1, "batch_size"), Confidence::check,
                              "BatchNorm sees " + std::to_string(*batch) +
                                  (*batch == 1 ? " sample" : " samples") + " on each rank"),
                    "local-statistics")
            .help =
            "Use SyncBatchNorm.convert_sync_batchnorm(model) before wrapping, or GroupNorm.";
      }
  }
}

namespace {

constexpr double kSameProbe = 1e-3;

}  // namespace

void judge_batchnorm_not_synchronised(const RunEvidence& run, RunReport& report) {
  if (rank_spread(run, "probe_output") > kSameProbe) {
    Finding& finding =
        report.add(Confidence::certain, "one sample is normalised to mean squares of " +
                                            rank_figures(run, "probe_output", 3) +
                                            " on the ranks: each uses the statistics of its own " +
                                            figure(run.number("batch_rows")) + " samples");
    finding.help = "convert_sync_batchnorm before wrapping, or GroupNorm.";
    finding.evidence.emplace_back("samples per rank", figure(run.number("batch_rows")));
  }
  if (!ranks_differ(run, "running_mean") && !ranks_differ(run, "running_variance")) return;
  Finding& finding =
      report.add(Confidence::certain, "the running statistics differ between ranks (means " +
                                          rank_figures(run, "running_mean", 2) +
                                          "): every rank validates with a model of its own");
  finding.help = "Leave broadcast_buffers on, or use SyncBatchNorm.";
  finding.evidence.emplace_back("running means", rank_figures(run, "running_mean", 3));
}

Price price_batchnorm_not_synchronised(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  if (broken.first("probe_output") != nullptr) {
    price.cost = rank_spread(broken, "probe_output");
    price.reproduced = price.cost > kSameProbe;
    price.gone =
        cured.first("probe_output") != nullptr && rank_spread(cured, "probe_output") <= kSameProbe;
    price.unit = "spread of one sample's mean square activation between ranks";
    price.seen = "silent: one and the same sample becomes " +
                 rank_figures(broken, "probe_output", 3) + " on the ranks";
    return price;
  }
  price.cost = rank_spread(broken, "running_mean");
  price.reproduced = ranks_differ(broken, "running_mean");
  price.gone = cured.first("running_mean") != nullptr && !ranks_differ(cured, "running_mean") &&
               !ranks_differ(cured, "running_variance");
  price.unit = "difference of running means between ranks";
  price.seen = "silent: running means " + rank_figures(broken, "running_mean", 2) +
               " by rank; the checkpoint has rank 0's";
  return price;
}

}  // namespace bench::pitfalls
