#include "diagnose/to_ddp/supplies.hpp"

#include "diagnose/to_ddp/loader_choice.hpp"
#include "diagnose/to_ddp/loader_loops.hpp"
#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

using pitfalls::facts::contains;
using pitfalls::facts::lowered;

// for state, grad in zip(states, grads): state.backward(grad): it walks over what is made already.
bool walks_over_losses(const Program& program, const TrainingLoop& loop) {
  return !loop.backwards.empty() &&
         std::all_of(loop.backwards.begin(), loop.backwards.end(), [&](const CallRef& backward) {
           const Ref loss = backward.receiver();
           if (!loss || loss.kind() != Kind::identifier) return false;
           const FunctionRef function = program.enclosing_function(loss);
           bool any = false;
           for (const std::uint32_t index : loss.module->defs_of(loss.text(), false)) {
             const Def& def = loss.module->defs()[index];
             if (program.enclosing_function({loss.module, def.target}) != function) continue;
             if (def.kind != DefKind::loop) return false;
             any = true;
           }
           return any;
         });
}

// A loop that the script comes by and that trains on batches, and no attack within an evaluation.
bool is_training(const Left& left, const TrainingLoop& loop) {
  return left.runs_on_every_rank(loop.batches) &&
         !pitfalls::is_evaluation_loop(left.program, loop.batches) &&
         !walks_over_losses(left.program, loop) && !left.program.is_evaluation(loop.batches);
}

}  // namespace

bool is_unfollowed(const Supply& supply) {
  return supply.share == Share::elsewhere || supply.share == Share::drawn;
}

std::vector<const TrainingLoop*> trainings(const Left& left) {
  std::vector<const TrainingLoop*> out;
  for (const TrainingLoop& loop : left.program.training_loops())
    if (is_training(left, loop)) out.push_back(&loop);
  return out;
}

std::vector<CallRef> loaders_behind(const Program& program, Ref iterable) {
  std::vector<CallRef> out = pitfalls::loaders_of(program, iterable);
  if (!out.empty() || !iterable) return out;
  out = loaders_within(program, program.strip_iterable(iterable));
  if (!out.empty()) return out;
  const CallRef call = program.as_call(program.strip_iterable(iterable));
  if (call && (call.call->name == "zip" || call.call->name == "chain"))
    for (std::size_t i = 0; const Ref part = call.positional(i); ++i)
      for (const CallRef& each : loaders_behind(program, part)) out.push_back(each);
  for (const Source& source : program.sources(program.strip_iterable(iterable)))
    if (source.how == Source::How::loop_item)
      for (const CallRef& each : pitfalls::loaders_of(program, source.ref)) out.push_back(each);
  return out;
}

namespace {

// `distributed` of DistributedSampler(data) if distributed else None, where nothing turns it on.
Ref option_of(const Program& program, const CallRef& sampler) {
  for (const Guard& guard : program.guards(sampler.ref()))
    if (guard.holds && !contains(guard.condition.text(), "is_initialized") &&
        program.evaluate(guard.condition).is_false())
      return guard.condition;
  return {};
}

// Of one that is no DistributedSampler, also by a name that holds None in some runs.
Share share_of_sampler(const Program& program, Ref sampler) {
  bool is_none = false;
  bool is_subset = false;
  const auto& sources = program.sources(sampler);
  for (const Source& source : sources) {
    const CallRef made = program.as_call(source.ref);
    is_none = is_none || source.ref.kind() == Kind::none_literal;
    is_subset = is_subset || (made && made.call->name == "SubsetRandomSampler");
  }
  if (is_subset) return Share::subset;
  return is_none && sources.size() > 1 ? Share::some_sampler : Share::own_sampler;
}

Share share_of(const Program& program, const CallRef& loader) {
  if (pitfalls::reads_iterable_dataset(program, loader)) return Share::stream;
  const Ref sampler = loader.argument(3, "sampler");
  const Ref batches = loader.argument(4, "batch_sampler");
  const auto is_given = [](Ref given) { return given && given.kind() != Kind::none_literal; };
  if (is_given(batches)) return Share::own_batches;
  if (is_given(sampler)) return share_of_sampler(program, sampler);
  return pitfalls::has_some_sampler(program, loader) ? Share::unseen : Share::whole;
}

Supply supply_of(const Program& program, const CallRef& loader) {
  const CallRef sampler = pitfalls::sampler_of(program, loader);
  if (!sampler) return {share_of(program, loader), loader.ref()};
  const Ref option = option_of(program, sampler);
  return {option ? Share::optional : Share::shared, loader.ref(), option};
}

// torchtext.data.BucketIterator(data, ...), DALIClassificationIterator(pipe, ...)
bool is_foreign(const CallRef& call) {
  const std::string_view path = call.call->path;
  return contains(path, "Iterator") &&
         (contains(path, "torchtext") || contains(path, "nvidia.dali"));
}

std::vector<CallRef> foreign_iterators(const Program& program) {
  return program.calls_that(
      [](std::string_view name) { return name.ends_with("Iterator") || name == "splits"; });
}

// super().__init__(sampler=self.sampler) of the only class that is a DataLoader, where a run picks
// its loader by a name.
Ref own_loader(const Left& left) {
  Ref out;
  for (const Module* module : left.program.modules())
    for (const Class& cls : module->classes()) {
      const auto& bases = cls.base_apis;
      const FunctionRef made = left.program.method({module, &cls}, "__init__");
      if (std::find(bases.begin(), bases.end(), Api::data_loader) == bases.end() || !made ||
          made.module != module)
        continue;
      if (out || contains(module->text(cls.node), "DistributedSampler")) return {};
      for (const CallRef& call : pitfalls::facts::calls_in({module, made.function->body}))
        if (call.call->name == "__init__" && call.receiver().text().starts_with("super(") &&
            call.keyword("sampler"))
          out = call.ref();
    }
  return out;
}

// The call that gives the batches, where one is in sight; the loop otherwise.
Ref giver_of(const Program& program, const TrainingLoop& loop) {
  const Ref iterable = program.strip_iterable(loop.iterable);
  for (const Source& source : program.sources(iterable))
    if (program.as_call(source.ref)) return source.ref;
  return loop.batches;
}

// What trains beside the loop's own batches, with a backward pass in the same branch; whatever the
// loader is called: valid_queue, for parameters of the architecture.
bool trains_in_branch(const Program& program, const CallRef& draw, const TrainingLoop& loop) {
  if (program.under_no_grad(draw.ref())) return false;
  const auto& tree = draw.module->tree();
  for (NodeId at = draw.call->node; at != kNoNode && at != loop.batches.node;
       at = tree[at].parent) {
    if (tree[at].kind != Kind::if_statement) continue;
    const auto calls = pitfalls::facts::calls_in(draw.ref().with(at));
    return std::any_of(calls.begin(), calls.end(),
                       [](const CallRef& call) { return call.call->name == "backward"; });
  }
  return false;
}

// target_batch = next(target_iter) in the loop over the source's batches.
std::vector<CallRef> drawn_beside(const Program& program, const TrainingLoop& loop) {
  std::vector<CallRef> out;
  for (const CallRef& draw : program.calls_named("next")) {
    if (draw.module != loop.batches.module || draw.receiver() || !draw.positional(0) ||
        !draw.module->tree().contains(loop.batches.node, draw.call->node))
      continue;
    for (const CallRef& each : loaders_behind(program, draw.positional(0)))
      if (!pitfalls::is_evaluation_loader(program, each) || trains_in_branch(program, draw, loop))
        out.push_back(each);
  }
  return out;
}

// Numbers, lists and what is cut from a tensor are no supply of batches that a sampler could share.
bool is_plain(const Program& program, Ref iterable) {
  const auto& sources = program.sources(iterable);
  return std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
    const Kind kind = source.ref.kind();
    const CallRef call = program.as_call(source.ref);
    return kind == Kind::list || kind == Kind::tuple || kind == Kind::integer ||
           kind == Kind::dictionary || (call && call.call->name == "range");
  });
}

}  // namespace

CallRef new_sampler(const Program& program, const CallRef& loader) {
  const CallRef sampler = pitfalls::sampler_of(program, loader);
  const bool is_new = sampler && sampler.module == loader.module &&
                      loader.module->tree().contains(loader.call->node, sampler.call->node);
  return is_new ? sampler : CallRef{};
}

std::vector<Supply> supplies_of(const Left& left, const TrainingLoop& loop) {
  std::vector<Supply> out;
  const Program& program = left.program;
  if (!loop.iterable) {
    out.push_back({Share::drawn, loop.batches});
    return out;
  }
  for (const CallRef& loader : loaders_behind(program, loop.iterable)) {
    if (!pitfalls::is_evaluation_loader(program, loader)) out.push_back(supply_of(program, loader));
    for (const CallRef& other : loaders_in_place_of(program, loader))
      if (!pitfalls::is_evaluation_loader(program, other) &&
          program.enclosing_class(loop.batches) != program.enclosing_class(loader.ref()))
        out.push_back(supply_of(program, other));
  }
  for (const CallRef& loader : drawn_beside(program, loop))
    out.push_back(supply_of(program, loader));
  if (!out.empty()) return out;
  const Ref iterable = program.strip_iterable(loop.iterable);
  if (is_plain(program, iterable)) return out;
  for (const Source& source : program.sources(iterable))
    if (const CallRef made = program.as_call(source.ref); made && is_foreign(made))
      return {{Share::foreign, source.ref}};
  ClassRef cls = program.class_of(iterable);
  // draw(epoch) of an object that can be called
  const CallRef drawn = program.as_call(iterable);
  if (const Ref object = drawn ? Ref{drawn.module, drawn.call->function} : Ref{}; !cls && object) {
    cls = program.class_of(object);
    if (cls && !program.method(cls, "__call__")) cls = {};
  }
  const bool knows_ranks =
      cls && (contains(lowered(cls.module->text(cls.cls->node)), "world_size") ||
              contains(lowered(cls.module->text(cls.cls->node)), "get_rank"));
  if (knows_ranks) return out;
  // One that a run picks by a name, of what it is given.
  if (program.derives_from(cls, Api::data_loader)) {
    const Ref derived = own_loader(left);
    return {{derived ? Share::own_loader : Share::elsewhere,
             derived ? derived : giver_of(program, loop)}};
  }
  const bool is_episodic =
      cls && pitfalls::says_any(cls.module->text(cls.cls->node), {"episode", "n_way", "n_shot"});
  const Share own = is_episodic ? Share::episodes : Share::own_class;
  out.push_back({cls ? own : Share::elsewhere, giver_of(program, loop)});
  return out;
}

namespace {

bool has_unfollowed_training(const Left& left) {
  const auto loops = trainings(left);
  return loops.empty() || std::any_of(loops.begin(), loops.end(), [&](const TrainingLoop* loop) {
           const auto supplies = supplies_of(left, *loop);
           return std::any_of(supplies.begin(), supplies.end(), is_unfollowed);
         });
}

}  // namespace

std::vector<Supply> unfollowed_supplies(const Left& left) {
  std::vector<Supply> out;
  if (!has_unfollowed_training(left)) return out;
  std::vector<Ref> followed;
  for (const TrainingLoop* loop : trainings(left))
    for (const Supply& each : supplies_of(left, *loop)) followed.push_back(each.place);
  const std::set<Ref> drawn = trainings(left).empty() ? drawn_without_gradients(left.program)
                                                      : drawn_without_training(left.program);
  for (const CallRef& loader : left.program.calls(Api::data_loader))
    if (std::find(followed.begin(), followed.end(), loader.ref()) == followed.end() &&
        left.runs_on_every_rank(loader.ref()) &&
        !pitfalls::is_evaluation_loader(left.program, loader) &&
        (serves_several(left.program, loader) || !drawn.contains(loader.ref()) ||
         new_sampler(left.program, loader)))
      out.push_back(supply_of(left.program, loader));
  for (const CallRef& made : foreign_iterators(left.program))
    if (is_foreign(made) && left.runs_on_every_rank(made.ref()) &&
        std::find(followed.begin(), followed.end(), made.ref()) == followed.end())
      out.push_back({Share::foreign, made.ref()});
  return out;
}

}  // namespace bench::diagnose
