#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/laboratory/trial_prices.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <cmath>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Wrap;
using diagnose::Wrapper;

namespace {

constexpr std::int64_t kSmallShard =
    16;  // samples below which batch statistics are known to suffer

// if in_process_group(): convert_sync_batchnorm(model), which runs under DataParallel do not enter.
bool is_for_process_groups(const Program& program, Ref node) {
  return program.under(node, [](Ref condition, bool holds) {
    return holds && (facts::contains(condition.text(), "is_initialized") ||
                     facts::contains(condition.text(), "dist_init"));
  });
}

// if sync_bn: convert_sync_batchnorm(self), where every call that makes the object leaves sync_bn
// at its default, False.
bool is_left_out(const Program& program, Ref node) {
  const diagnose::ClassRef cls = program.enclosing_class(node);
  if (cls && program.calls_named(cls.cls->name).empty()) return false;
  const auto guards = program.guards(node);
  return std::any_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
    const diagnose::Value value = program.evaluate(guard.condition);
    return !value.is_default && (guard.holds ? value.is_false() : value.is_true());
  });
}

}  // namespace

void check_batchnorm_under_dataparallel(const Program& program, Report& report) {
  if (!program.has_data_parallel()) return;
  if (!program.uses(Api::init_process_group) && !program.has_ddp() &&
      !program.framework_distributes()) {
    for (const Api api : {Api::convert_sync_batch_norm, Api::sync_batch_norm})
      for (const CallRef& call : program.calls(api)) {
        if (call.call->path.starts_with("apex.") || is_left_out(program, call.ref()) ||
            is_for_process_groups(program, call.ref()))
          continue;
        Finding& finding = in_no_trial(report.at(
            call.ref(), Confidence::certain,
            "SyncBatchNorm has no effect under DataParallel: without a process group it is "
            "plain BatchNorm, with statistics of each shard alone"));
        finding.severity = Severity::error;
        finding.help = "Use DistributedDataParallel, or GroupNorm in its place.";
      }
  }
  for (const Wrap& wrap : program.wraps()) {
    const auto ids = facts::device_ids(program, wrap.call);
    if (wrap.kind != Wrapper::data_parallel || ids.size() < 2 ||
        !facts::has_batch_norm(program, wrap))
      continue;
    for (const CallRef& loader : program.calls(Api::data_loader)) {
      const auto batch = program.integer(loader.argument(1, "batch_size"));
      // One sample goes to one GPU, which sees the whole batch.
      const std::int64_t shard =
          std::max<std::int64_t>(1, batch.value_or(0) / static_cast<std::int64_t>(ids.size()));
      if (!batch || *batch < 2 || shard >= kSmallShard || is_evaluation_loader(program, loader))
        continue;
      Finding& finding = report.at(loader.argument(1, "batch_size"), Confidence::check,
                                   "BatchNorm sees " + std::to_string(shard) +
                                       (shard == 1 ? " sample" : " samples") +
                                       " on each GPU, not " + std::to_string(*batch));
      finding.severity = Severity::info;
      finding.help = "Use DistributedDataParallel with convert_sync_batchnorm(), or GroupNorm.";
    }
  }
}

namespace {

// Largest minus smallest of what one and the same sample became in the replicas.
double replica_spread(const RunEvidence& run) {
  const Json* outputs = run.first("replica_probe_outputs");
  if (outputs == nullptr || outputs->size() < 2) return 0;
  const auto values = outputs->get<std::vector<double>>();
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return *most - *least;
}

constexpr double kSameActivation = 1e-3;

}  // namespace

void judge_batchnorm_under_dataparallel(const RunEvidence& run, RunReport& report) {
  if (replica_spread(run) <= kSameActivation) return;
  std::string outputs;
  for (const Json& output : *run.first("replica_probe_outputs"))
    outputs += (outputs.empty() ? "" : ", ") + figure(output.get<double>(), 3);
  Finding& finding =
      report.add(Confidence::certain, "one sample is normalised to mean squares of " + outputs +
                                          " in the replicas: each uses the statistics of its own " +
                                          figure(run.number("shard_rows")) + " samples");
  finding.help = "DDP with convert_sync_batchnorm, or GroupNorm.";
  finding.evidence.emplace_back("running mean", figure(run.number("running_mean"), 3));
}

Price price_batchnorm_under_dataparallel(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  price.reproduced =
      replica_spread(broken) > kSameActivation &&
      std::fabs(broken.number("running_mean") - broken.number("running_mean_of_batch")) > 1e-3;
  price.gone =
      cured.first("replica_probe_outputs") != nullptr && replica_spread(cured) <= kSameActivation;
  price.cost = replica_spread(broken);
  price.unit = "spread of one sample's mean square activation between replicas";
  price.seen = "silent: the running mean keeps " + figure(broken.number("running_mean"), 2) +
               " of the first GPU's shard; the whole batch would give " +
               figure(broken.number("running_mean_of_batch"), 2);
  return price;
}

}  // namespace bench::pitfalls
