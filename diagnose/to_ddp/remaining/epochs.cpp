// Samplers that nobody tells of a new epoch.
#include "diagnose/to_ddp/loader_choice.hpp"
#include "diagnose/to_ddp/remaining/topics.hpp"
#include "diagnose/to_ddp/supplies.hpp"
#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <optional>
#include <set>

namespace bench::diagnose {
namespace {

Ref around_loop(const Program& program, Ref loop) {
  const NodeId parent = loop.module->tree()[loop.node].parent;
  return parent == kNoNode ? Ref{} : program.innermost_loop(loop.with(parent));
}

// More passes than one: a loop over epochs that is not counted to one.
bool has_epochs(const Program& program, const TrainingLoop& loop) {
  return loop.epochs && pitfalls::epoch_count(program, loop.epochs).value_or(2) > 1;
}

constexpr const char* kNoEpochs =
    "nothing calls set_epoch on this sampler, and no step could follow where the batches go: every "
    "pass takes the samples in the same order. Count the passes and call "
    "loader.sampler.set_epoch(n) at the start of each.";

// The loaders and samplers that set_epoch is called for; nothing where one of them is not known.
std::optional<std::set<Ref>> told_of_epochs(const Program& program) {
  std::set<Ref> out;
  for (const CallRef& set : program.calls_named("set_epoch")) {
    const Ref object = set.receiver();
    const std::size_t before = out.size();
    if (object.kind() == Kind::attribute && object.child(Field::attribute).text() == "sampler")
      for (const CallRef& loader : pitfalls::loaders_of(program, object.child(Field::object)))
        out.insert(loader.ref());
    for (const Source& source : program.sources(object))
      if (program.as_call(source.ref)) out.insert(source.ref);
    if (out.size() == before) return std::nullopt;
  }
  return out;
}

// shuffle=True of a sampler, or what is True for some of its loaders.
bool may_shuffle(const Program& program, const CallRef& sampler) {
  const Ref shuffle = sampler.argument(3, "shuffle");
  const auto& sources = program.sources(shuffle);
  return !shuffle || sources.empty() ||
         std::any_of(sources.begin(), sources.end(),
                     [](const Source& source) { return source.ref.kind() != Kind::false_literal; });
}

// Loaders that a step has shared out and no training loop is seen to draw from.
std::vector<Ref> forgotten_loaders(const Left& left) {
  const Program& program = left.program;
  const auto told = told_of_epochs(program);
  std::vector<Ref> out;
  if (!told) return out;
  std::set<Ref> followed;
  for (const TrainingLoop* loop : trainings(left))
    for (const Supply& each : supplies_of(left, *loop)) followed.insert(each.place);
  for (const CallRef& loader : program.calls(Api::data_loader)) {
    const CallRef sampler = new_sampler(program, loader);
    if (sampler && may_shuffle(program, sampler) && !told->contains(loader.ref()) &&
        !told->contains(sampler.ref()) && !followed.contains(loader.ref()) &&
        left.runs_on_every_rank(loader.ref()) && !pitfalls::is_evaluation_loader(program, loader) &&
        !serves_several(program, loader) && choice_of_item(program, loader).empty() &&
        !left.is_found(sampler.ref(), "DDP018") && !left.is_found(loader.ref(), "DDP018"))
      out.push_back(loader.ref());
  }
  return out;
}

// Every loader of the loop is shared out.
bool draws_shares(const Left& left, const TrainingLoop& loop) {
  const auto supplies = supplies_of(left, loop);
  return !supplies.empty() && std::all_of(supplies.begin(), supplies.end(), [](const Supply& each) {
    return each.share == Share::shared;
  });
}

// while step < steps: batch = batches.next(): the passes begin somewhere in between.
bool counts_steps(const Program& program, const TrainingLoop& loop) {
  if (loop.epochs) return false;
  const CallRef range = program.as_call(loop.batches.child(Field::right));
  return loop.batches.kind() == Kind::while_statement || (range && range.call->name == "range");
}

// The shared loaders of such loops.
std::vector<Ref> loaders_of_steps(const Left& left) {
  std::vector<Ref> out;
  for (const TrainingLoop* loop : trainings(left)) {
    if (!counts_steps(left.program, *loop)) continue;
    for (const Supply& each : supplies_of(left, *loop)) {
      const CallRef sampler = each.share == Share::shared
                                  ? new_sampler(left.program, left.program.as_call(each.place))
                                  : CallRef{};
      if (sampler && may_shuffle(left.program, sampler)) out.push_back(each.place);
    }
  }
  return out;
}

}  // namespace

void tell_missing_epochs(Left& left) {
  const Program& program = left.program;
  const bool is_found = std::any_of(left.found.begin(), left.found.end(),
                                    [](const Finding& each) { return each.rule == "DDP018"; });
  std::vector<Ref> forgotten = forgotten_loaders(left);
  // Without training in sight the finding is not told.
  if (!program.calls_named("set_epoch").empty() || (is_found && has_sharded_training(left))) {
    left.tell(Harm::figures, forgotten, kNoEpochs);
    return;
  }
  std::vector<Ref> places;
  for (const TrainingLoop* loop : trainings(left)) {
    if (!has_epochs(program, *loop) || !draws_shares(left, *loop)) continue;
    const auto loaders = loaders_behind(program, loop->iterable);
    const bool shuffles = std::any_of(loaders.begin(), loaders.end(), [&](const CallRef& loader) {
      const CallRef sampler = pitfalls::sampler_of(program, loader);
      return sampler && !program.is_literal_false(sampler.argument(3, "shuffle"));
    });
    if (!shuffles) continue;
    // Where a batch is taken apart, the loop around goes over the loader.
    const bool is_pass = !loaders_behind(program, loop->epochs.child(Field::right)).empty();
    const Ref around = is_pass ? around_loop(program, loop->epochs) : loop->epochs;
    if (around) places.push_back(around);
  }
  left.tell(Harm::figures, places,
            "nothing calls set_epoch in this loop: every pass takes the samples in the same order. "
            "Count the passes and call loader.sampler.set_epoch(n) at the start of each.");
  for (const Supply& each : unfollowed_supplies(left))
    if (each.share == Share::shared) forgotten.push_back(each.place);
  for (const Ref& each : loaders_of_steps(left)) forgotten.push_back(each);
  left.tell(Harm::figures, forgotten, kNoEpochs);
}

}  // namespace bench::diagnose
