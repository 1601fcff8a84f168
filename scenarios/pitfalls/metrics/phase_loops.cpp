#include "scenarios/pitfalls/metrics/phase_loops.hpp"

#include "scenarios/pitfalls/data/loader_trails.hpp"
#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::Source;

namespace {

// The guard is met by a backward pass that only a phase of training comes by.
bool is_for_training(const Program& program, const CallRef& backward, Ref within) {
  const auto guards = program.guards(backward.ref());
  return std::any_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
    return guard.holds && holds_any(guard.condition.text(), {"train", "optim"}) &&
           within.module == guard.condition.module &&
           within.module->tree().contains(within.node, guard.condition.node);
  });
}

// The backward passes of a call: itself, or those of the function that it runs.
std::vector<CallRef> backwards_behind(const Program& program, const CallRef& call) {
  if (call.call->name == "backward") return {call};
  const FunctionRef helper = program.callee(call);
  if (!helper) return {};
  auto inside = facts::calls_in({helper.module, helper.function->body});
  std::erase_if(inside, [](const CallRef& each) { return each.call->name != "backward"; });
  return inside;
}

}  // namespace

bool trains_in_one_phase(const Program& program, Ref loop) {
  bool any = false;
  for (const CallRef& call : facts::calls_in(loop.child(Field::body)))
    for (const CallRef& backward : backwards_behind(program, call)) {
      any = true;
      const FunctionRef helper = program.enclosing_function(backward.ref());
      const bool is_here = backward.call == call.call;
      if (!is_for_training(program, backward,
                           is_here ? loop : Ref{helper.module, helper.function->body}))
        return false;
    }
  return any;
}

bool trains_in_loop(const Program& program, Ref loop) {
  const Ref body = loop.child(Field::body);
  if (trains_in_one_phase(program, loop)) return false;
  return program.subtree_calls(body, [](const CallRef& call) {
    return call.call->name == "backward";
  }) && program.subtree_calls(body, [&](const CallRef& call) {
    if (call.call->name != "step" || !call.receiver()) return false;
    const std::string object = facts::lowered(call.receiver().text());
    return program.comes_from(call.receiver(), diagnose::Api::optimizer) ||
           says_any(object, {"optim", "scaler"});
  });
}

namespace {

// {x: DataLoader(sets[x], sampler=samplers[x]) for x in phases}, and loaders[x] = DataLoader(...)
// in a loop over them; not with a sampler for one of the phases alone.
bool is_made_for_each_phase(const Program& program, const CallRef& loader) {
  if (loader.module->tree().ancestor(loader.call->node, Kind::comprehension) == diagnose::kNoNode &&
      !program.innermost_loop(loader.ref()))
    return false;
  const auto& samplers = program.sources(loader.keyword("sampler"));
  return std::all_of(samplers.begin(), samplers.end(), [&](const Source& source) {
    const CallRef made = program.as_call(source.ref);
    return made && made.call->api == diagnose::Api::distributed_sampler;
  });
}

}  // namespace

bool is_run_for_evaluation(const Program& program, Ref loop,
                           const std::function<bool(Ref batches)>& accepts) {
  const FunctionRef function = program.enclosing_function(loop);
  if (!function || !trains_in_one_phase(program, loop)) return false;
  const auto& sites = program.call_sites(function);
  return std::any_of(sites.begin(), sites.end(), [&](const CallRef& site) {
    const auto given = facts::arguments_of(site);
    return std::any_of(given.begin(), given.end(), [&](Ref batches) {
      return says_any(batches.text(), {"val", "test", "eval", "dev"}) &&
             !says_any(batches.text(), {"train"}) && accepts(batches);
    });
  });
}

bool is_run_over_shard(const Program& program, Ref loop, const CallRef& loader) {
  const CallRef sampler = sampler_of(program, loader);
  return is_run_for_evaluation(program, loop, [&](Ref batches) {
    const auto loaders = loaders_of(program, batches);
    return std::any_of(loaders.begin(), loaders.end(),
                       [&](const CallRef& each) { return each.ref() == loader.ref(); }) &&
           !is_left_out_on_every_trail(program, batches, loader, sampler);
  });
}

bool evaluates_in_one_phase(const Program& program, Ref loop, const CallRef& loader) {
  const Ref batches = program.strip_iterable(loop.child(Field::right));
  if (batches.kind() != Kind::subscript || !trains_in_one_phase(program, loop) ||
      !is_made_for_each_phase(program, loader))
    return false;
  const auto& phases = program.sources(batches.child(Field::subscript));
  return std::any_of(phases.begin(), phases.end(), [](const Source& source) {
    return source.how == Source::How::loop_item &&
           says_any(source.ref.text(),
                    {"'val", "\"val", "'test", "\"test", "'eval", "\"eval", "'dev", "\"dev"});
  });
}

}  // namespace bench::pitfalls
