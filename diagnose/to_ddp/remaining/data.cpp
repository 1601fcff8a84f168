// Training data that ranks do not share out between them.
#include "diagnose/to_ddp/loader_choice.hpp"
#include "diagnose/to_ddp/loader_loops.hpp"
#include "diagnose/to_ddp/remaining/topics.hpp"
#include "diagnose/to_ddp/seeds.hpp"
#include "diagnose/to_ddp/supplies.hpp"
#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <map>

namespace bench::diagnose {
namespace {

using pitfalls::facts::contains;
using pitfalls::facts::lowered;

// What ranks that draw from all the data do with fixed seeds.
std::string with_seeds(const Left& left) {
  const CallRef seed = common_seed(left, Draws::torch);
  return seed ? ", and with the seed of " + place_of(seed.ref()) +
                    " the same batches are drawn on all of them"
              : "";
}

constexpr const char* kShared =
    "sampler=DistributedSampler(dataset) in place of shuffle, batch_size divided by "
    "dist.get_world_size(), and sampler.set_epoch(epoch) in each epoch.";

// Of samplers that know no ranks; empty for other shares.
std::string text_of_sampler(Share share, const std::string& loader, const std::string& seeds) {
  switch (share) {
    case Share::own_sampler:
      return loader +
             " has a sampler of its own that knows no ranks: each of them draws a full epoch from "
             "all the data" +
             seeds +
             ". Let every rank draw its part (a sampler over indices[rank::world_size], or one "
             "that draws length // world_size samples) and divide the batch size.";
    case Share::some_sampler:
      return loader +
             " has a sampler of its own in some runs, and none in others; neither knows ranks: "
             "each of them goes over all the data" +
             seeds + ". Where there is none, give it " + kShared +
             " Where there is one, let every rank draw its part (length // world_size samples).";
    case Share::subset:
      return loader +
             " draws from a list of indices, and knows no ranks: each of them goes over all of "
             "that list" +
             seeds +
             ". Give each rank its part, SubsetRandomSampler(indices[rank::world_size]) cut to "
             "one length, and divide the batch size; a DistributedSampler(dataset) would draw from "
             "what the list leaves out, too.";
    case Share::own_batches:
      return loader +
             " has a batch sampler of its own that knows no ranks: each of them draws all of its "
             "batches" +
             seeds +
             ". Let every rank draw an N-th of the batches, with a seed of its own; where training "
             "takes any part of a batch, divide the batches, and leave their number.";
    default:
      return {};
  }
}

std::string text_of(Share share, const std::string& loader, const std::string& seeds) {
  if (std::string text = text_of_sampler(share, loader, seeds); !text.empty()) return text;
  switch (share) {
    case Share::whole:
      return loader + " is not shared out: every rank goes over all the data" + seeds +
             ". Give it " + kShared;
    case Share::own_loader:
      return "the class of this DataLoader is picked by a name, and no step has shared its data "
             "out: every rank goes over all of it" +
             seeds +
             ". Where the sampler is None, give it DistributedSampler(dataset) in place of "
             "shuffle, and call set_epoch; where it draws from a list of indices, give each rank "
             "its part of them (indices[rank::world_size], cut to one length). Divide the batch "
             "size by the number of ranks.";
    case Share::unseen:
      return "the arguments of " + loader +
             " are not in sight, and no step has changed them: see that it has a "
             "DistributedSampler and a rank's share of the batch size.";
    case Share::stream:
      return loader +
             " reads an IterableDataset, which a DistributedSampler cannot share out: every rank "
             "reads the whole stream. Let its __iter__ keep every item whose number % world_size "
             "is the rank, and divide the batch size.";
    case Share::foreign:
      return "this iterator takes no DistributedSampler: every rank goes over all the data" +
             seeds +
             ". Give it the samples of its rank (examples[rank::world_size], cut to one length on "
             "all ranks; shard_id and num_shards in DALI) and a rank's share of the batch size.";
    case Share::own_class:
      return "the batches come from a class of the project, not from a DataLoader: every rank goes "
             "over all the data" +
             seeds +
             ". Let the class take only the samples of its rank (items[rank::world_size]) and a "
             "rank's share of the batch size.";
    case Share::episodes:
      return "the batches are episodes that a class of the project draws for itself: every rank "
             "draws as many as one process did" +
             seeds +
             ". Divide the number of episodes in a step by the number of ranks, here and where "
             "tensors are shaped by it (or the number of steps), and seed the draws of each rank "
             "with a number of its own.";
    case Share::drawn:
      return "no loader gives this loop its batches, so that no step has shared them out: see that "
             "every rank takes samples of its own, and a rank's share of the batch.";
    default:
      break;
  }
  return "what makes these batches could not be followed, and no step has shared them out: unless "
         "it does so, every rank goes over all the data" +
         seeds + ". Give its loader " + kShared;
}

// get_loaders(args) makes one with a DistributedSampler under an option, and one without.
bool shares_under_option(const std::vector<Supply>& supplies) {
  const auto is = [](Share share) {
    return [share](const Supply& each) { return each.share == share; };
  };
  return std::any_of(supplies.begin(), supplies.end(), is(Share::shared)) &&
         std::any_of(supplies.begin(), supplies.end(), is(Share::whole));
}

// The condition that divides the loader that is shared out from the one that is not; empty where
// none is in sight.
Ref option_between(const Program& program, Ref shared, Ref whole) {
  const auto others = program.guards(whole);
  for (const Guard& guard : program.guards(shared))
    for (const Guard& other : others)
      if (guard.condition == other.condition && guard.holds != other.holds) return guard.condition;
  return {};
}

void tell_option(Left& left, Ref shared, Ref option) {
  left.tell(
      Harm::figures, {shared},
      "the training data is shared out only " +
          (option ? "as `" + std::string(option.text()) + "` says"
                  : std::string("in one of several branches")) +
          ": where it is not, every rank goes over all of it. Start with the option that leads "
          "here, divide the batch size, and call set_epoch on the sampler.");
}

void tell_option(Left& left, const std::vector<Supply>& supplies) {
  Ref shared;
  Ref whole;
  for (const Supply& each : supplies) {
    if (each.share == Share::shared && !shared) shared = each.place;
    if (each.share == Share::whole && !whole) whole = each.place;
  }
  tell_option(left, shared, option_between(left.program, shared, whole));
}

// loader.batch_size of the call, through names: batch_size * num_gpus.
Ref product_of_gpus(const Program& program, const CallRef& loader) {
  const Ref batch = loader.argument(1, "batch_size");
  if (!batch || contains(batch.text(), "get_world_size") || batch.kind() == Kind::conditional)
    return {};
  for (const Source& source : program.sources(batch)) {
    const Node& node = source.ref.module->tree()[source.ref.node];
    if (source.ref.kind() != Kind::binary || node.op != Op::multiply) continue;
    for (const Field side : {Field::left, Field::right}) {
      const std::string text = lowered(pitfalls::text_behind(program, source.ref.child(side)));
      if (contains(text, "device_count") || contains(text, "gpu") || contains(text, "len(device"))
        return source.ref;
    }
  }
  return {};
}

bool is_sharded(const Left& left, const TrainingLoop& loop) {
  const auto supplies = supplies_of(left, loop);
  return !supplies.empty() && std::all_of(supplies.begin(), supplies.end(), [](const Supply& each) {
    return each.share == Share::shared;
  });
}

// order = np.random.permutation(ids)[:n], and images[order]: batches made by hand.
bool draws_samples(const Program& program, Ref loop) {
  return program.subtree_calls(loop, [](const CallRef& call) {
    constexpr std::string_view kDraws[] = {"numpy.random.permutation", "numpy.random.choice",
                                           "torch.randperm"};
    const auto& tree = call.module->tree();
    const auto parent = call.ref().with(tree[call.call->node].parent);
    return std::find(std::begin(kDraws), std::end(kDraws), call.call->path) != std::end(kDraws) &&
           parent.kind() == Kind::subscript && parent.child(Field::value) == call.ref();
  });
}

}  // namespace

bool has_sharded_training(const Left& left) {
  const auto loops = trainings(left);
  return std::any_of(loops.begin(), loops.end(),
                     [&](const TrainingLoop* loop) { return is_sharded(left, *loop); });
}

void tell_unshared_data(Left& left) {
  std::map<Share, std::vector<Ref>> places;
  const auto unfollowed = unfollowed_supplies(left);
  const bool has_whole = std::any_of(unfollowed.begin(), unfollowed.end(), [](const Supply& each) {
    return each.share != Share::shared;
  });
  // A loop that draws from no loader need not draw from those that are shared out.
  const auto is_told_by_loader = [&](const Supply& supply) {
    return has_whole ? is_unfollowed(supply)
                     : supply.share == Share::elsewhere && !unfollowed.empty();
  };
  for (const TrainingLoop* loop : trainings(left)) {
    const auto supplies = supplies_of(left, *loop);
    if (shares_under_option(supplies)) {
      tell_option(left, supplies);
      continue;
    }
    for (const Supply& each : supplies)
      if (each.share == Share::optional)
        tell_option(left, each.place, each.option);
      else if (each.share != Share::shared && !is_told_by_loader(each))
        places[each.share].push_back(each.place);
  }
  // A few steps on one sample beside the training: an attack, a projection.
  if (places.size() > 1 || has_sharded_training(left))
    std::erase_if(places[Share::drawn],
                  [&](Ref loop) { return !draws_samples(left.program, loop); });
  const std::string seeds = with_seeds(left);
  for (auto& [share, where] : places)
    left.tell(Harm::figures, where, text_of(share, "this training loader", seeds));
  for (const Supply& each : unfollowed)
    if (each.share == Share::optional)
      tell_option(left, each.place, each.option);
    else if (each.share != Share::shared)
      left.tell(Harm::figures, {each.place},
                text_of(each.share, "this loader, which training seems to draw from,", seeds));
}

namespace {

// for x, y in loader: return x.shape
bool leaves_early(const Program& program, Ref loop) {
  const auto& tree = loop.module->tree();
  for (NodeId node = loop.node; node < tree[loop.node].last; ++node)
    if (tree[node].kind == Kind::return_statement &&
        program.enclosing_function(loop.with(node)) == program.enclosing_function(loop))
      return true;
  return pitfalls::facts::has_break(program, loop);
}

// test() of a class that goes over what it is given.
bool is_in_evaluation(const Program& program, Ref node) {
  const FunctionRef function = program.enclosing_function(node);
  return function &&
         pitfalls::says_any(function.function->name, {"test", "val", "eval", "infer", "predict"});
}

// make(args, True) of memory_loader = make(args, True), where nothing else has that name.
CallRef call_behind(const Program& program, Ref iterable) {
  const Ref name = iterable ? program.strip_iterable(iterable) : Ref{};
  if (!name || name.kind() != Kind::identifier) return {};
  const auto& defs = name.module->defs_of(name.text(), false);
  if (defs.size() != 1) return {};
  const Def& def = name.module->defs()[defs.front()];
  return def.value == kNoNode ? CallRef{} : program.as_call(name.with(def.value));
}

// memory_loader = make(args, train=True) beside train_loader = make(args, train=True), where the
// word decides who shares.
bool is_made_as_training(const Left& left, const PassOver& pass, const std::vector<Ref>& shared) {
  const Program& program = left.program;
  const CallRef site = call_behind(program, pass.loop.child(Field::right));
  if (!site || site.ref() == pass.loader.ref() || !serves_several(program, pass.loader) ||
      !left.runs_on_every_rank(pass.loop) || leaves_early(program, pass.loop) ||
      std::find(shared.begin(), shared.end(), pass.loader.ref()) == shared.end())
    return false;
  const Ref sampler = pass.loader.argument(3, "sampler");
  const auto given = pitfalls::facts::arguments_of(site);
  const bool is_trained =
      std::any_of(left.program.training_loops().begin(), left.program.training_loops().end(),
                  [&](const TrainingLoop& loop) {
                    const CallRef other = call_behind(program, loop.iterable);
                    return other && other.ref() == site.ref();
                  });
  return sampler.kind() == Kind::conditional && !is_trained &&
         std::any_of(given.begin(), given.end(), [&](Ref each) {
           return each.kind() == Kind::true_literal ||
                  pitfalls::says_any(program.string(each).value_or(""), {"train"});
         });
}

// Read back by the number of the batch: logits[i] of `for i, batch in enumerate(loader)`.
bool is_read_by_number(std::string_view list, const TrainingLoop& loop) {
  const Ref target = loop.batches.child(Field::left);
  const auto& tree = loop.batches.module->tree();
  if (!target || tree[target.node].first_child == kNoNode) return false;
  const std::string_view number = tree.text(tree[target.node].first_child);
  for (const NodeId node : loop.batches.module->nodes_of(Kind::subscript)) {
    const Ref item = loop.batches.with(node);
    const std::string_view name = item.child(Field::value).text();
    if (tree.contains(loop.batches.node, node) && item.child(Field::subscript).text() == number &&
        (name == list || name.ends_with("." + std::string(list))))
      return true;
  }
  return false;
}

// logits.append(teacher(x)) for each batch of a share that keeps its order, and training goes over
// the same share: what each rank keeps is what it needs.
bool is_paired_with_training(const Program& program, const PassOver& pass,
                             const std::vector<const TrainingLoop*>& trained) {
  const CallRef sampler = pitfalls::sampler_of(program, pass.loader);
  const Ref shuffle = sampler ? sampler.argument(3, "shuffle") : Ref{};
  if (!shuffle || !program.is_literal_false(shuffle)) return false;
  const auto calls = pitfalls::facts::calls_in(pass.loop);
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    return call.call->name == "append" && call.receiver() &&
           std::any_of(trained.begin(), trained.end(), [&](const TrainingLoop* loop) {
             return is_read_by_number(call.receiver().text(), *loop);
           });
  });
}

}  // namespace

void tell_passes_over_shares(Left& left) {
  std::vector<Ref> shared;
  for (const TrainingLoop* loop : trainings(left))
    for (const Supply& each : supplies_of(left, *loop))
      if (each.share == Share::shared) shared.push_back(each.place);
  // Of loops that cannot be followed one may be the training; a comprehension is none.
  std::vector<Ref> unfollowed;
  for (const Supply& each : unfollowed_supplies(left))
    if (each.share == Share::shared) unfollowed.push_back(each.place);
  const bool trains_in_sight = !trainings(left).empty();
  const auto goes_over_share = [&](const PassOver& pass) {
    const auto is_in = [&](const std::vector<Ref>& loaders) {
      return std::find(loaders.begin(), loaders.end(), pass.loader.ref()) != loaders.end();
    };
    // Training that is in sight is another loop, whatever it draws from.
    if (trains_in_sight && new_sampler(left.program, pass.loader)) return true;
    return is_in(shared) || (pass.loop.kind() == Kind::for_in_clause && is_in(unfollowed));
  };
  std::vector<Ref> places;
  std::vector<Ref> places_made_alike;
  const auto trained = trainings(left);
  const auto passes = passes_without_training(left.program);
  for (const PassOver& pass : passes)
    if (goes_over_share(pass) && !serves_several(left.program, pass.loader) &&
        choice_of_item(left.program, pass.loader).empty() && left.runs_on_every_rank(pass.loop) &&
        !pitfalls::is_evaluation_loop(left.program, pass.loop) &&
        !is_in_evaluation(left.program, pass.loop) && !leaves_early(left.program, pass.loop) &&
        !is_paired_with_training(left.program, pass, trained))
      places.push_back(pass.loop);
  for (const PassOver& pass : passes)
    if (is_made_as_training(left, pass, shared)) places_made_alike.push_back(pass.loop);
  left.tell(Harm::figures, places_made_alike,
            "the loader of this loop is made in the way of that for training and shared out with "
            "it: what the loop counts or keeps is a rank's part. Have it made without a sampler "
            "here, or put the results of the ranks together.");
  left.tell(Harm::figures, places,
            "this loop goes over the loader of the training, which is a rank's share of the data "
            "now: what it counts or keeps is not that of all. Give it a loader of its own, or put "
            "the results of the ranks together.");
}

namespace {

// A node of the function cuts or counts: x.split(4), range(n), size, batch[i], batch[:4]. What its
// docstring says of a batch does not count.
bool may_cut(Ref node) {
  const auto& tree = node.module->tree();
  if (node.kind() == Kind::slice) return true;
  if (node.kind() == Kind::subscript) return node.child(Field::subscript).text().starts_with("i");
  return node.kind() == Kind::identifier &&
         pitfalls::says_any(tree.text(node.node), {"chunk", "split", "range", "size"});
}

// A collate_fn of the program that only stacks what it is given.
bool surely_cuts_nothing(const Program& program, Ref collate) {
  FunctionRef function;
  for (const FunctionRef& each : program.functions())
    if (each.function->name == collate.text()) {
      if (function) return false;
      function = each;
    }
  if (!function) return false;
  const auto& tree = function.module->tree();
  for (NodeId at = function.function->body; at < tree[function.function->body].last; ++at)
    if (may_cut({function.module, at})) return false;
  return true;
}

}  // namespace

void tell_recut_batches(Left& left) {
  for (const TrainingLoop* loop : trainings(left)) {
    if (!loop->iterable || !pitfalls::loaders_of(left.program, loop->iterable).empty()) continue;
    for (const CallRef& loader : loaders_behind(left.program, loop->iterable)) {
      const Ref cuts = loader.argument(6, "collate_fn");
      if (!cuts || !pitfalls::sampler_of(left.program, loader) ||
          surely_cuts_nothing(left.program, cuts))
        continue;
      left.tell(Harm::figures, {loader.ref()},
                "a batch of this loader is several steps of training: `" +
                    std::string(cuts.text()) +
                    "` cuts it by a size of its own, which no step has divided by the number of "
                    "ranks. Divide that size, too, and see that a rank's part still fills a step.");
    }
  }
}

void tell_batch_of_all(Left& left) {
  std::vector<Ref> places;
  for (const TrainingLoop* loop : trainings(left))
    for (const CallRef& loader : loaders_behind(left.program, loop->iterable))
      if (const Ref product = product_of_gpus(left.program, loader)) places.push_back(product);
  left.tell(
      Harm::figures, places,
      "this is the batch size of all GPUs, and every rank takes it whole: N times the memory of "
      "a GPU and N times the samples of a step. Leave the number of GPUs out.");
}

}  // namespace bench::diagnose
