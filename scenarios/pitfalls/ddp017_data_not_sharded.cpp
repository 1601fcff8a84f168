#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/data/endless_draws.hpp"
#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/data/second_loaders.hpp"
#include "scenarios/pitfalls/data/whole_copies.hpp"
#include "scenarios/pitfalls/frameworks/engines.hpp"
#include "scenarios/pitfalls/frameworks/trainer_loaders.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/ranks/own_ranks.hpp"

#include <algorithm>
#include <cstdint>
#include <map>

namespace bench::pitfalls {

using diagnose::Api;
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

// device=device, download=rank == 0: what a rank says of itself, and no share of the samples.
bool shares_nothing(std::string_view name) {
  static constexpr std::string_view kNames[] = {"device",  "download", "force_download",
                                                "verbose", "progress", "disable_tqdm"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// The rank is in another argument of the data set than those: Dataset(files, part=rank).
bool made_from_rank(const Program& program, Ref dataset) {
  if (!program.comes_from_rank(dataset) || is_whole_copy(program, dataset)) return false;
  for (const diagnose::Source& source : program.sources(dataset)) {
    const CallRef made = program.as_call(source.ref);
    if (!made || source.how != diagnose::Source::How::value) return true;
    bool tells = false;
    for (const diagnose::Argument& given : made.module->arguments(made.call->node))
      if (shares_nothing(given.name))
        tells = true;
      else if (program.comes_from_rank({made.module, given.value}))
        return true;
    if (!tells || made.has_splat()) return true;
  }
  return false;
}

// A name in its code, or os.environ["RANK"]; what its docstring tells is no code.
bool names_rank(ClassRef cls) {
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

// order[rank::size] and range(rank, n, size) in its code: it takes its share there, and does not
// only name the rank.
bool deals_by_rank(const Program& program, ClassRef cls) {
  const auto& tree = cls.module->tree();
  for (diagnose::NodeId id = cls.cls->node; id < tree[cls.cls->node].last; ++id) {
    Ref part{cls.module, id};
    if (part.kind() == diagnose::Kind::subscript) {
      part = part.child(diagnose::Field::subscript);
    } else {
      const CallRef call = program.as_call(part);
      if (!call || (call.call->name != "range" && call.call->name != "islice")) continue;
    }
    if (says_any(part.text(), {"rank"}) || program.comes_from_rank(part)) return true;
  }
  return false;
}

// Pairs(list(RankShare(graphs))): a class of the program, by its name and its code, deals out what
// the data set is made of.
bool is_made_of_a_share(const Program& program, Ref dataset) {
  const auto behind = facts::calls_behind(program, dataset);
  return std::any_of(behind.begin(), behind.end(), [&](Ref each) {
    const ClassRef cls = program.class_of_call(program.as_call(each));
    return cls && says_any(cls.cls->name, {"sampler", "shard", "share", "split", "partition"}) &&
           names_rank(cls) && deals_by_rank(program, cls);
  });
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
  return (cls && names_rank(cls)) || is_made_of_a_share(program, dataset);
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

namespace {

// DataLoader(Sentences(root), batch_size=8) of a class that is not at hand: whoever trains on
// samples by their index asks for a shuffle. An IterableDataset takes none, and may split itself.
bool may_be_iterable(const Program& program, const CallRef& loader) {
  if (loader.argument(2, "shuffle") || loader.has_splat()) return false;
  const Ref dataset = loader.argument(0, "dataset");
  const CallRef made = dataset ? program.made_by(dataset) : CallRef{};
  if (!made || program.class_of_call(made) || program.callee(made)) return false;
  const std::string_view path = made.call->path;
  return !path.empty() && !path.starts_with("torch") && !path.starts_with("datasets.");
}

constexpr std::string_view kNotSharded =
    "the training loader has no DistributedSampler: every rank trains on all the data, N times the "
    "work for one epoch";
constexpr std::string_view kMayBeIterable =
    "a data set that is not at hand, and is not shuffled, may split itself";
constexpr std::string_view kPassSampler =
    "Pass sampler=DistributedSampler(dataset), drop shuffle=True, and call set_epoch in each "
    "epoch.";

// Each rank that gets here draws all of the data from it.
bool gives_all_data(const Program& program, const CallRef& loader) {
  return !has_some_sampler(program, loader) && !dataset_knows_rank(program, loader) &&
         !is_evaluation_loader(program, loader) && !reads_iterable_dataset(program, loader) &&
         !facts::only_without_distribution(program, loader.ref()) &&
         !program.under(loader.ref(), [](Ref condition, bool) {
           return says_any(condition.text(), {"sampler", "iterabledataset"});
         });
}

// train(loader, model) of a file that is not at hand, in a loop over epochs: it can shard no more.
void check_handed_loaders_unsharded(const Program& program, Report& report) {
  if (!program.training_loops().empty()) return;
  const diagnose::Module& root = program.root();
  for (const diagnose::NodeId node : root.loops()) {
    const Ref loop{&root, node};
    if (loop.kind() != diagnose::Kind::for_statement ||
        !facts::contains(loop.child(diagnose::Field::left).text(), "epoch"))
      continue;
    for (const CallRef& call : facts::calls_in(loop.child(diagnose::Field::body))) {
      if (call.call->api != Api::none || program.callee(call) || program.class_of_call(call) ||
          !says_any(call.call->name, {"train", "fit", "epoch", "step"}) ||
          says_any(call.call->name, {"val", "eval", "test"}))
        continue;
      const auto given = facts::arguments_of(call);
      if (std::none_of(given.begin(), given.end(), [&](Ref each) {
            return program.wrap_of(each, Wrapper::ddp) != nullptr ||
                   (says_any(call.call->name, {"train", "fit"}) &&
                    (is_engine(program, each) || is_sharded(program, each)));
          }))
        continue;
      // train(model, loader, calibration): the first of them is shared out.
      const auto is_shared_out = [&](Ref each) {
        const auto loaders = loaders_of(program, each);
        return std::any_of(loaders.begin(), loaders.end(), [&](const CallRef& loader) {
          return !is_evaluation_loader(program, loader) &&
                 (has_some_sampler(program, loader) || dataset_knows_rank(program, loader));
        });
      };
      if (std::any_of(given.begin(), given.end(), is_shared_out)) continue;
      for (const Ref each : given) {
        const auto loaders = loaders_of(program, each);
        // loader = DataLoader(data), and if distributed: loader = DataLoader(data, sampler=sampler)
        if (std::any_of(loaders.begin(), loaders.end(),
                        [&](const CallRef& loader) { return has_some_sampler(program, loader); }))
          continue;
        for (const CallRef& loader : loaders) {
          if (!gives_all_data(program, loader)) continue;
          Finding& finding = report.at(loader.ref(), Confidence::likely, std::string(kNotSharded));
          finding.help = kPassSampler;
          if (may_be_iterable(program, loader)) tell_as_note(finding, std::string(kMayBeIterable));
        }
      }
    }
  }
}

// Something is done with the sampler: a name other than those that are never read holds it.
bool is_given_away(const Program& program, const CallRef& made, int depth = 0) {
  const std::string_view name = program.assigned_name(made.ref());
  if (name.empty() || depth > 2) return true;
  const auto& tree = made.module->tree();
  for (diagnose::NodeId id = 0; id < tree.size(); ++id) {
    const diagnose::Kind kind = tree[id].kind;
    if ((kind != diagnose::Kind::identifier && kind != diagnose::Kind::attribute) ||
        tree.text(id) != name || tree[id].field == diagnose::Field::left)
      continue;
    const diagnose::NodeId parent = tree[id].parent;
    if (parent == diagnose::kNoNode) return true;
    if (tree[parent].kind == diagnose::Kind::attribute && tree.text(parent).ends_with(".set_epoch"))
      continue;
    const CallRef user = tree[parent].kind == diagnose::Kind::argument_list
                             ? program.as_call(made.ref().with(tree[parent].parent))
                             : CallRef{};
    if (!user || (user.call->name != "BatchSampler" && user.call->name != "print" &&
                  user.call->name != "len"))
      return true;
    if (user.call->name == "BatchSampler" && is_given_away(program, user, depth + 1)) return true;
  }
  return false;
}

// sampler = DistributedSampler(data), and DataLoader(data, shuffle=True) beside it.
void check_forgotten_samplers(const Program& program, Report& report) {
  if (program.framework_distributes()) return;
  for (const CallRef& sampler : program.calls(Api::distributed_sampler)) {
    const Ref dataset = sampler.argument(0, "dataset");
    if (!dataset || is_given_away(program, sampler)) continue;
    for (const TrainingLoop& loop : program.training_loops())
      for (const CallRef& loader : loaders_of(program, loop.iterable)) {
        if (loader.module != sampler.module ||
            loader.argument(0, "dataset").text() != dataset.text() ||
            program.enclosing_function(diagnose::made_at(program, loader).ref()) !=
                program.enclosing_function(diagnose::made_at(program, sampler).ref()) ||
            !gives_all_data(program, loader))
          continue;
        report
            .at(loader.ref(), Confidence::certain,
                "the DistributedSampler of this data is given to no loader: every rank trains on "
                "all the data, N times the work for one epoch")
            .help = "Pass sampler=" + std::string(program.assigned_name(sampler.ref())) +
                    " here, and drop shuffle=True.";
        return;
      }
  }
}

// model(x) in the loop, of what FSDP or DeepSpeed made: each rank has data of its own for them too.
bool trains_sharded_model(const Program& program, const TrainingLoop& loop) {
  const auto& backwards = loop.backwards;
  if (std::any_of(backwards.begin(), backwards.end(),
                  [&](const CallRef& backward) { return is_engine(program, backward.receiver()); }))
    return true;
  return program.subtree_calls(loop.batches, [&](const CallRef& call) {
    const Ref model = call.call->name == "forward" && call.receiver()
                          ? call.receiver()
                          : Ref{call.module, call.call->function};
    return diagnose::stands_for_object(model) &&
           (is_engine(program, model) || is_sharded(program, model));
  });
}

// Ranks of one group that work on the same samples together. A StableDiffusionPipeline shares none,
// and mpu, Megatron's name for its groups, is a part of "compute".
bool may_share_samples(const Program& program) {
  for (const std::string_view word : {"DeviceMesh",
                                      "device_mesh",
                                      "tensor_parallel",
                                      "model_parallel",
                                      "PipelineModule",
                                      "PipelineRuntime",
                                      "Pipelined",
                                      "PipelineStage",
                                      "PipelineEngine",
                                      "PipelineParallel",
                                      "pipeline_parallel",
                                      "pipelining",
                                      ".mpu",
                                      " mpu",
                                      "(mpu",
                                      "=mpu",
                                      ",mpu",
                                      "sequence_parallel",
                                      "context_parallel",
                                      "ulysses",
                                      "sp_size",
                                      "tp_size",
                                      "cp_size",
                                      "pp_size"})
    if (program.mentions(word)) return true;
  return false;
}

void check_sharded_models(const Program& program, Report& report) {
  if (!trains_by_engine(program) || program.has_ddp() || shards_elsewhere(program) ||
      may_share_samples(program))
    return;
  if (!makes_loaders_anew(program)) check_handed_loaders_unsharded(program, report);
  for (const TrainingLoop& loop : program.training_loops())
    for (const CallRef& loader : loaders_of(program, loop.iterable))
      if (gives_all_data(program, loader) && trains_sharded_model(program, loop))
        report.at(loader.ref(), Confidence::likely, std::string(kNotSharded)).help = kPassSampler;
}

// A data set of the program, or what a Trainer is given as one, is a part that a rank has picked.
bool trainers_data_knows_rank(const Program& program) {
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Class& cls : module->classes())
      for (const char* method : {"__getitem__", "__iter__"})
        if (module->method(cls, method) != nullptr && names_rank({module, &cls})) return true;
  constexpr std::size_t kTrainDataset = 3;
  for (const CallRef& trainer : program.calls(Api::hf_trainer)) {
    const Ref given = trainer.argument(kTrainDataset, "train_dataset");
    if (given && made_from_rank(program, given)) return true;
  }
  return false;
}

// def get_train_dataloader(self): return DataLoader(self.train_dataset, shuffle=True).
// Trainer.train() goes over what it returns as it is.
void check_loaders_of_trainer(const Program& program, Report& report) {
  if (!has_trainer_ranks(program) || shards_elsewhere(program)) return;
  for (const CallRef& loader : program.calls(Api::data_loader)) {
    if (!trainer_goes_over(program, loader) || loader.has_splat() ||
        has_some_sampler(program, loader) || dataset_knows_rank(program, loader) ||
        reads_iterable_dataset(program, loader) || trainers_data_knows_rank(program))
      continue;
    report
        .at(loader.ref(), Confidence::likely,
            "the Trainer goes over this loader as it is: without a sampler every process trains on "
            "all the data")
        .help =
        "Return self.accelerator.prepare(loader), or pass sampler=DistributedSampler(dataset).";
  }
}

}  // namespace

void check_data_not_sharded(const Program& program, Report& report) {
  check_forgotten_samplers(program, report);
  check_sharded_models(program, report);
  check_loaders_of_trainer(program, report);
  if (!program.has_ddp() || program.framework_distributes() || shards_elsewhere(program) ||
      makes_loaders_anew(program))
    return;
  check_handed_loaders_unsharded(program, report);
  for (const TrainingLoop& loop : program.training_loops())
    for (const CallRef& loader : loaders_of_training(program, loop)) {
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
      if (iterable && draws_its_own_samples(program, loader.argument(0, "dataset"))) continue;
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
      if (!iterable && may_be_iterable(program, loader))
        tell_as_note(finding, std::string(kMayBeIterable));
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
