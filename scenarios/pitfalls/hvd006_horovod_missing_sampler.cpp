#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/loaders.hpp"

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::TrainingLoop;

void check_horovod_missing_sampler(const Program& program, Report& report) {
  if (!program.uses(Api::hvd_init) || program.mentions("ElasticSampler") ||
      program.mentions("petastorm"))
    return;
  for (const TrainingLoop& loop : program.training_loops())
    for (const CallRef& loader : loaders_of(program, loop.iterable)) {
      if (has_some_sampler(program, loader) || reads_iterable_dataset(program, loader)) continue;
      const Ref dataset = loader.argument(0, "dataset");
      if (dataset && program.comes_from_rank(dataset)) continue;
      report
          .at(loader.ref(), Confidence::certain,
              "the training loader has no DistributedSampler: every rank trains on all the data")
          .help = "sampler=DistributedSampler(dataset, num_replicas=hvd.size(), rank=hvd.rank()).";
    }
}

}  // namespace bench::pitfalls
