#include "scenarios/pitfalls/metrics/phase_loops.hpp"

#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;
using diagnose::Source;

bool trains_in_one_phase(const Program& program, Ref loop) {
  bool any = false;
  for (const CallRef& call : facts::calls_in(loop.child(Field::body))) {
    if (call.call->name != "backward") continue;
    any = true;
    const auto guards = program.guards(call.ref());
    if (std::none_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
          return guard.holds && facts::contains(guard.condition.text(), "train") &&
                 loop.module->tree().contains(loop.node, guard.condition.node);
        }))
      return false;
  }
  return any;
}

namespace {

// {x: DataLoader(sets[x], sampler=samplers[x]) for x in phases}, and loaders[x] = DataLoader(...)
// in a loop over them; not with a sampler for one of the phases alone.
bool is_made_for_each_phase(const Program& program, const CallRef& loader) {
  if (loader.module->tree().ancestor(loader.call->node, Kind::comprehension) == diagnose::kNoNode &&
      !program.innermost_loop(loader.ref()))
    return false;
  const auto samplers = program.sources(loader.keyword("sampler"));
  return std::none_of(samplers.begin(), samplers.end(),
                      [](const Source& source) { return source.ref.kind() == Kind::none_literal; });
}

}  // namespace

bool evaluates_in_one_phase(const Program& program, Ref loop, const CallRef& loader) {
  const Ref batches = program.strip_iterable(loop.child(Field::right));
  if (batches.kind() != Kind::subscript || !trains_in_one_phase(program, loop) ||
      !is_made_for_each_phase(program, loader))
    return false;
  const auto phases = program.sources(batches.child(Field::subscript));
  return std::any_of(phases.begin(), phases.end(), [](const Source& source) {
    return source.how == Source::How::loop_item &&
           says_any(source.ref.text(),
                    {"'val", "\"val", "'test", "\"test", "'eval", "\"eval", "'dev", "\"dev"});
  });
}

}  // namespace bench::pitfalls
