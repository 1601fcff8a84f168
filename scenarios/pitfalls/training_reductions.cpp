#include "scenarios/pitfalls/training_reductions.hpp"

#include "scenarios/pitfalls/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::FunctionRef;

namespace {

constexpr int kFollowedHelpers = 3;

// The value is the loss of a backward pass in the same round, or made of it.
bool is_loss_of_round(const Program& program, Ref value, Ref call) {
  const Ref round = program.innermost_loop(call);
  if (!round) return false;
  const VariableNames made = behind(variables_in(value), assignments_in(round));
  const auto backwards = program.calls_named("backward");
  return std::any_of(backwards.begin(), backwards.end(), [&](const CallRef& backward) {
    const Ref loss = facts::loss_of(backward);
    return loss && backward.module == call.module &&
           program.innermost_loop(backward.ref()) == round && meet(variables_in(loss), made);
  });
}

// What the evaluation's rounds give a value under the same name, where they can see it.
bool is_value_of(const Program& program, Ref loop, Ref value, Ref call) {
  if (program.enclosing_function(loop) != program.enclosing_function(call)) return false;
  const VariableNames names = variables_in(value);
  const auto assigned = assignments_in(loop);
  return std::any_of(assigned.begin(), assigned.end(),
                     [&](const Assigned& each) { return names.contains(each.name); });
}

bool is_of_training(const Program& program, const Reduction& reduction, Ref loop, int depth) {
  if (!reduction.value || (reduction.call.module == loop.module &&
                           loop.module->tree().contains(loop.node, reduction.call.node)))
    return false;
  if (is_loss_of_round(program, reduction.value, reduction.call))
    return !is_value_of(program, loop, reduction.value, reduction.call);
  const FunctionRef helper = program.enclosing_function(reduction.call);
  if (!helper || depth == kFollowedHelpers || helper == program.enclosing_function(loop))
    return false;
  const auto& sites = program.call_sites(helper);
  return !sites.empty() && std::all_of(sites.begin(), sites.end(), [&](const CallRef& site) {
    return is_of_training(program, {site.ref(), site.positional(0)}, loop, depth + 1);
  });
}

}  // namespace

bool is_of_training(const Program& program, const Reduction& reduction, Ref loop) {
  return is_of_training(program, reduction, loop, 0);
}

}  // namespace bench::pitfalls
