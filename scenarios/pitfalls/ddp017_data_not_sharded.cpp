#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"
#include "scenarios/pitfalls/loaders.hpp"

namespace bench::pitfalls {

using diagnose::ClassRef;
using diagnose::TrainingLoop;
using diagnose::Wrapper;

namespace {

// Something else in the program deals the data out between ranks.
bool shards_elsewhere(const Program& program) {
  for (const std::string_view word :
       {"split_by_node", "split_dataset_by_node", "DistributedWeightedSampler", "wds.",
        "webdataset", ".shard(", "ffcv", "nvidia.dali", "DALI", "DistributedBatchSampler",
        "StatefulDataLoader", "StreamingDataset"})
    if (program.mentions(word)) return true;
  return false;
}

bool dataset_knows_rank(const Program& program, const CallRef& loader) {
  const Ref dataset = loader.argument(0, "dataset");
  if (!dataset) return true;
  if (program.mentions_rank(dataset)) return true;
  const ClassRef cls = program.class_of(dataset);
  if (!cls) return false;
  const std::string body = facts::lowered(cls.module->text(cls.cls->node));
  return facts::contains(body, "rank") || facts::contains(body, "world_size");
}

}  // namespace

void check_data_not_sharded(const Program& program, Report& report) {
  if (!program.has_ddp() || program.framework_distributes() || shards_elsewhere(program)) return;
  for (const TrainingLoop& loop : program.training_loops())
    for (const CallRef& loader : loaders_of(program, loop.iterable)) {
      if (has_some_sampler(program, loader) || dataset_knows_rank(program, loader) ||
          is_evaluation_loader(program, loader))
        continue;
      // isinstance(dataset, IterableDataset): a class that is not seen may split its data itself.
      if (program.under(loader.ref(), [](Ref condition, bool holds) {
            return holds && facts::contains(condition.text(), "IterableDataset");
          }))
        continue;
      if (facts::only_without_distribution(program, loader.ref())) continue;
      bool trains_wrapped = false;
      for (const auto& forward : program.forward_calls())
        trains_wrapped = trains_wrapped || forward.wrap->kind == Wrapper::ddp;
      if (!trains_wrapped) continue;
      const bool iterable = reads_iterable_dataset(program, loader);
      Finding& finding = report.at(
          loader.ref(), iterable ? Confidence::likely : Confidence::certain,
          iterable
              ? "the IterableDataset is not split between ranks: every rank reads all of it"
              : "the training loader has no DistributedSampler: every rank trains on all the data, "
                "N times the work for one epoch");
      finding.help =
          iterable ? "Take every world_size-th item from rank on, and split among workers too."
                   : "Pass sampler=DistributedSampler(dataset), drop shuffle=True, and call "
                     "set_epoch in each epoch.";
    }
}

}  // namespace bench::pitfalls
