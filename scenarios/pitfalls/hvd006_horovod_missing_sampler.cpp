#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/data/whole_copies.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::TrainingLoop;

namespace {

// DataLoader(DistributedSampler(data), shuffle=True): the sampler stands where the data set
// belongs.
bool reads_sampler(const Program& program, Ref dataset) {
  const auto& sources = program.sources(dataset);
  return !sources.empty() &&
         std::all_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
           const CallRef made = program.as_call(source.ref);
           return source.how == diagnose::Source::How::value && made &&
                  made.call->api == Api::distributed_sampler;
         });
}

void check_sampler_for_dataset(const Program& program, Report& report) {
  for (const CallRef& loader : program.calls(Api::data_loader)) {
    if (!reads_sampler(program, loader.argument(0, "dataset")) ||
        !facts::is_reachable(program, loader.ref()))
      continue;
    report
        .at(loader.ref(), Confidence::certain,
            "the DistributedSampler is given as the data set, and a sampler has no items: "
            "TypeError, object is not subscriptable")
        .help = "DataLoader(dataset, sampler=sampler), without shuffle.";
  }
}

}  // namespace

void check_horovod_missing_sampler(const Program& program, Report& report) {
  if (program.uses(Api::hvd_init)) check_sampler_for_dataset(program, report);
  if (!program.uses(Api::hvd_init) || program.mentions("ElasticSampler") ||
      program.mentions("petastorm"))
    return;
  for (const TrainingLoop& loop : program.training_loops())
    for (const CallRef& loader : loaders_of(program, loop.iterable)) {
      if (has_some_sampler(program, loader) || reads_iterable_dataset(program, loader) ||
          facts::only_without_distribution(program, loader.ref()))
        continue;
      const Ref dataset = loader.argument(0, "dataset");
      if (dataset && program.comes_from_rank(dataset) && !is_whole_copy(program, dataset)) continue;
      report
          .at(loader.ref(), Confidence::certain,
              "the training loader has no DistributedSampler: every rank trains on all the data")
          .help = "sampler=DistributedSampler(dataset, num_replicas=hvd.size(), rank=hvd.rank()).";
    }
}

}  // namespace bench::pitfalls
