#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/loaders.hpp"

#include <algorithm>
#include <cstdint>
#include <map>

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

// Dataset(files, device=device), where the device is the rank's: no share of the samples. Every
// argument of the data set but its device is looked at.
bool made_from_rank(const Program& program, Ref dataset) {
  if (!program.comes_from_rank(dataset)) return false;
  for (const diagnose::Source& source : program.sources(dataset)) {
    const CallRef made = program.as_call(source.ref);
    if (!made || source.how != diagnose::Source::How::value || !made.keyword("device")) return true;
    const auto& tree = made.module->tree();
    const auto list = tree.child(made.call->node, diagnose::Field::arguments);
    for (auto at = tree[list].first_child; at != diagnose::kNoNode; at = tree[at].next_sibling)
      if (!tree.text(at).starts_with("device=") && program.comes_from_rank({made.module, at}))
        return true;
  }
  return false;
}

bool dataset_knows_rank(const Program& program, const CallRef& loader) {
  const Ref dataset = loader.argument(0, "dataset");
  if (!dataset) return true;
  if (made_from_rank(program, dataset)) return true;
  // Made by a function of another file, which knows how many ranks there are.
  for (const diagnose::Source& source : program.sources(dataset))
    if (source.ref.module != loader.module &&
        facts::contains(source.ref.module->tree().source(), "world_size"))
      return true;
  const ClassRef cls = program.class_of(dataset);
  if (!cls) return false;
  // A name in its code, or os.environ["RANK"]; what its docstring tells is no code.
  const auto& tree = cls.module->tree();
  for (diagnose::NodeId id = cls.cls->node; id < tree[cls.cls->node].last; ++id) {
    const diagnose::Kind kind = tree[id].kind;
    const std::string text = kind == diagnose::Kind::identifier || kind == diagnose::Kind::string
                                 ? facts::lowered(tree.text(id))
                                 : std::string();
    const bool named = facts::contains(text, "rank") || facts::contains(text, "world_size");
    if (named && (kind == diagnose::Kind::identifier || text.find(' ') == std::string::npos))
      return true;
  }
  return false;
}

// The loop trains something else, in a program that trains its wrapped model elsewhere.
bool trains_unwrapped(const Program& program, const TrainingLoop& loop) {
  const auto through_ddp = [&](const TrainingLoop& training) {
    for (const CallRef& backward : training.backwards)
      for (const auto& forward : facts::forwards_behind(program, facts::loss_of(backward)))
        if (forward.wrap->kind == Wrapper::ddp) return true;
    return false;
  };
  const auto& loops = program.training_loops();
  return !through_ddp(loop) && std::any_of(loops.begin(), loops.end(), through_ddp);
}

}  // namespace

namespace {

// DistributedSampler(loader.dataset): loaders are made anew from those that stand here.
bool makes_loaders_anew(const Program& program) {
  const auto samplers = program.calls(diagnose::Api::distributed_sampler);
  return std::any_of(samplers.begin(), samplers.end(), [](const CallRef& sampler) {
    return sampler.argument(0, "dataset").text().ends_with(".dataset") &&
           !sampler.argument(0, "dataset").text().starts_with("self.");
  });
}

}  // namespace

void check_data_not_sharded(const Program& program, Report& report) {
  if (!program.has_ddp() || program.framework_distributes() || shards_elsewhere(program) ||
      makes_loaders_anew(program))
    return;
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
      // The other branch of `if train_sampler:`.
      if (program.under(loader.ref(), [](Ref condition, bool holds) {
            const bool absent = facts::contains(condition.text(), "is None");
            return facts::contains(condition.text(), "sampler") && holds == absent;
          }))
        continue;
      bool trains_wrapped = false;
      for (const auto& forward : program.forward_calls())
        trains_wrapped = trains_wrapped || forward.wrap->kind == Wrapper::ddp;
      if (!trains_wrapped || trains_unwrapped(program, loop)) continue;
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

namespace {

// Share of the samples that another rank trains on as well, in the first epoch.
double repeated_share(const RunEvidence& run) {
  std::map<std::int64_t, int> seen;
  double visits = 0;
  for (const Json& indices : run.of_every_rank("indices")) {
    for (const Json& index : indices) ++seen[index.get<std::int64_t>()];
    visits += static_cast<double>(indices.size());
  }
  return visits > 0 ? 1 - static_cast<double>(seen.size()) / visits : 0;
}

// A sampler repeats fewer samples than there are ranks; more than this is no padding.
constexpr double kPaddingShare = 0.1;

}  // namespace

void judge_data_not_sharded(const RunEvidence& run, RunReport& report) {
  const double repeated = repeated_share(run);
  if (repeated <= kPaddingShare) return;
  Finding& finding = report.add(Confidence::certain, figure(100 * repeated) +
                                                         " % of the samples of an epoch are "
                                                         "trained on by more than one rank");
  finding.help = "Give the loader a DistributedSampler, with the ranks of the process group.";
}

Price price_data_not_sharded(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  price.reproduced = repeated_share(broken) > kPaddingShare;
  price.gone = !cured.of_every_rank("indices").empty() && repeated_share(cured) == 0;
  price.cost = 100 * repeated_share(broken);
  price.unit = "% of the work done twice (" + figure(broken.number("steps")) +
               " steps per epoch "
               "instead of " +
               figure(cured.number("steps")) + ")";
  price.seen = "silent: all ranks visit the same samples";
  return price;
}

}  // namespace bench::pitfalls
