#include "scenarios/pitfalls/steps/repeated_batches.hpp"

#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/metrics/metric_sums.hpp"

namespace bench::pitfalls {

using diagnose::Field;

bool repeats_batch(const Program& program, Ref inner) {
  const auto loops = program.loops_around(inner);
  if (loops.empty() ||
      loaders_of(program, program.strip_iterable(loops.front().child(Field::right))).empty() ||
      !loaders_of(program, program.strip_iterable(inner.child(Field::right))).empty())
    return false;
  const auto turns = variables_in(inner.child(Field::left));
  const auto& tree = inner.module->tree();
  bool any = false;
  for (const diagnose::ForwardCall& forward : program.forward_calls()) {
    const CallRef& call = forward.call;
    if (call.module != inner.module || !tree.contains(inner.node, call.call->node)) continue;
    for (const std::string& name : variables_in(call.ref().child(Field::function)))
      if (turns.contains(name)) return false;
    any = true;
  }
  return any;
}

}  // namespace bench::pitfalls
