#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"
#include "scenarios/pitfalls/loaders.hpp"

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
        report
            .at(loader.argument(1, "batch_size"), Confidence::check,
                "BatchNorm sees " + std::to_string(*batch) + " samples on each rank")
            .help =
            "Use SyncBatchNorm.convert_sync_batchnorm(model) before wrapping, or GroupNorm.";
      }
  }
}

}  // namespace bench::pitfalls
