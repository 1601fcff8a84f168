#include "scenarios/pitfalls/metrics/training_reductions.hpp"

#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <string>
#include <vector>

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

// What the evaluation's rounds give a value under the same name, where they can see it, or what is
// made of it between the loop and the call.
bool is_value_of(const Program& program, Ref loop, Ref value, Ref call) {
  if (program.enclosing_function(loop) != program.enclosing_function(call)) return false;
  std::vector<Assigned> between = assignments_in(body_around(program, loop));
  std::erase_if(between, [&](const Assigned& each) {
    return each.target < loop.module->tree()[loop.node].last || each.target > call.node;
  });
  const VariableNames names = behind(variables_in(value), between);
  const auto assigned = assignments_in(loop);
  return std::any_of(assigned.begin(), assigned.end(),
                     [&](const Assigned& each) { return names.contains(each.name); });
}

// self.losses, to which a function with a backward pass adds.
bool is_held_by_training(const Program& program, const std::string& name, const Ref& call) {
  if (!name.starts_with("self.")) return false;
  const auto cls = program.enclosing_class(call);
  const auto backwards = program.calls_named("backward");
  return std::any_of(backwards.begin(), backwards.end(), [&](const CallRef& backward) {
    if (!program.enclosing_function(backward.ref()) ||
        program.enclosing_class(backward.ref()) != cls)
      return false;
    const auto added = assignments_in(body_around(program, backward.ref()));
    return std::any_of(added.begin(), added.end(),
                       [&](const Assigned& each) { return each.name == name; });
  });
}

// loss = torch.tensor(self.losses).mean() in the function around the evaluation: made of what the
// training steps have added to, and of nothing that the evaluation gives.
bool is_sum_of_steps(const Program& program, Ref value, Ref call, Ref loop) {
  const FunctionRef here = program.enclosing_function(call);
  const FunctionRef evaluation = program.enclosing_function(loop);
  if (!here || !evaluation || here == evaluation || !program.enclosing_class(call)) return false;
  const auto assigned = assignments_in({here.module, here.function->body});
  const VariableNames names = behind(variables_in(value), assigned);
  for (const Assigned& each : assigned) {
    if (!names.contains(each.name) || !each.value) continue;
    for (const CallRef& made : facts::calls_in(each.value))
      if (const FunctionRef callee = program.callee(made);
          callee && (callee == evaluation || enters(program, callee, evaluation)))
        return false;
  }
  for (const Assigned& each : assignments_in({evaluation.module, evaluation.function->body}))
    if (each.name.starts_with("self.") && names.contains(each.name)) return false;
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return is_held_by_training(program, name, call);
  });
}

bool is_of_training(const Program& program, const Reduction& reduction, Ref loop, int depth) {
  if (!reduction.value || (reduction.call.module == loop.module &&
                           loop.module->tree().contains(loop.node, reduction.call.node)))
    return false;
  if (is_loss_of_round(program, reduction.value, reduction.call))
    return !is_value_of(program, loop, reduction.value, reduction.call);
  if (is_sum_of_steps(program, reduction.value, reduction.call, loop)) return true;
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
