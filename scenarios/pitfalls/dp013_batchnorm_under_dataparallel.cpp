#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"
#include "scenarios/pitfalls/loaders.hpp"

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Wrap;
using diagnose::Wrapper;

namespace {

constexpr std::int64_t kSmallShard =
    16;  // samples below which batch statistics are known to suffer

}  // namespace

void check_batchnorm_under_dataparallel(const Program& program, Report& report) {
  if (!program.has_data_parallel()) return;
  if (!program.uses(Api::init_process_group) && !program.has_ddp() &&
      !program.framework_distributes()) {
    for (const Api api : {Api::convert_sync_batch_norm, Api::sync_batch_norm})
      for (const CallRef& call : program.calls(api)) {
        if (call.module->qualified(call.call->function).starts_with("apex.")) continue;
        report
            .at(call.ref(), Confidence::certain,
                "SyncBatchNorm has no effect under DataParallel: without a process group it is "
                "plain BatchNorm, with statistics of each shard alone")
            .severity = Severity::error;
      }
  }
  for (const Wrap& wrap : program.wraps()) {
    const auto ids = facts::device_ids(program, wrap.call);
    if (wrap.kind != Wrapper::data_parallel || ids.size() < 2 ||
        !facts::has_batch_norm(program, wrap))
      continue;
    for (const CallRef& loader : program.calls(Api::data_loader)) {
      const auto batch = program.integer(loader.argument(1, "batch_size"));
      const auto shard = batch.value_or(0) / static_cast<std::int64_t>(ids.size());
      if (!batch || shard >= kSmallShard || is_evaluation_loader(program, loader)) continue;
      report
          .at(loader.argument(1, "batch_size"), Confidence::check,
              "BatchNorm sees " + std::to_string(shard) + " samples on each GPU, not " +
                  std::to_string(*batch))
          .severity = Severity::info;
    }
  }
}

}  // namespace bench::pitfalls
