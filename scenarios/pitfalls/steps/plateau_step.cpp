#include "scenarios/pitfalls/steps/plateau_step.hpp"

#include "scenarios/pitfalls/metrics/step_sums.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/reach/order.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::TrainingLoop;

namespace {

bool is_plateau(const Program& program, const CallRef& step) {
  if (!step.receiver()) return false;
  const auto& sources = program.sources(step.receiver());
  return !sources.empty() &&
         std::all_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
           const CallRef made = program.as_call(source.ref);
           return made && made.call->name == "ReduceLROnPlateau";
         });
}

// sum(losses) / len(loader), np.mean(losses), loss.item(): the figure stays that of its rank. A
// helper with another name may ask the other ranks; the options of the command line do not.
bool is_arithmetic(Ref value) {
  constexpr std::string_view kPlain[] = {"sum",   "len",   "mean",   "average",   "item",
                                         "float", "int",   "detach", "cpu",       "numpy",
                                         "array", "round", "tensor", "parse_args"};
  const auto calls = facts::calls_in(value);
  return std::all_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    return std::find(std::begin(kPlain), std::end(kPlain), call.call->name) != std::end(kPlain);
  });
}

// The variables of an expression without those that only give a length: total in
// total / len(loader).
VariableNames figures_in(Ref value) {
  VariableNames names;
  std::vector<Ref> pending{value};  // sums of any length cost no call stack
  while (!pending.empty()) {
    const Ref at = pending.back();
    pending.pop_back();
    if (at.kind() == Kind::binary) {
      pending.push_back(at.child(Field::left));
      pending.push_back(at.child(Field::right));
    } else if (at.kind() != Kind::call || at.child(Field::function).text() != "len") {
      names.merge(variables_in(at));
    }
  }
  return names;
}

// The variables that the value is made of, by arithmetic; what is assigned below `end` is not it.
VariableNames made_of(Ref value, const std::vector<Assigned>& assigned, diagnose::NodeId end) {
  if (!is_arithmetic(value)) return {};
  VariableNames names = figures_in(value);
  for (bool grown = true; grown;) {
    grown = false;
    for (const Assigned& each : assigned) {
      if (each.target > end || !names.contains(each.name)) continue;
      if (!is_arithmetic(each.value)) continue;
      for (const std::string& name : figures_in(each.value))
        grown = names.insert(name).second || grown;
    }
  }
  return names;
}

// A variable of these gets a value from a call that is no arithmetic, and is no sum of the loop.
bool passes_a_helper(const VariableNames& names, const std::vector<Assigned>& assigned,
                     Ref batches) {
  const auto& tree = batches.module->tree();
  return std::any_of(assigned.begin(), assigned.end(), [&](const Assigned& each) {
    return names.contains(each.name) && !tree.contains(batches.node, each.target) &&
           !is_arithmetic(each.value);
  });
}

// The name of a metric that the loop over batches adds up and the step's value is made of.
std::string own_sum(const Program& program, const CallRef& step, Ref body, Ref batches) {
  std::vector<Assigned> assigned = assignments_in(body);
  // On a script's own level the body is all of it: variables of functions are others.
  std::erase_if(assigned, [&](const Assigned& each) {
    return body.node == 0 && body.module->function_of(each.target) != 0;
  });
  const VariableNames names = made_of(step.positional(0), assigned, step.call->node);
  if (names.empty() || passes_a_helper(names, assigned, batches)) return {};
  for (const std::string& name : metrics_added_in(program, batches))
    if (names.contains(name)) return name;
  return {};
}

// The function that the loop calls for each batch asks the other ranks.
bool reduces_in(const Program& program, const std::vector<Reduction>& reductions, Ref batches) {
  return std::any_of(reductions.begin(), reductions.end(), [&](const Reduction& reduction) {
    return runs_in(program, batches, reduction.call);
  });
}

bool all_ranks_step(const Program& program, const CallRef& step) {
  return step.positional(0) && is_plateau(program, step) &&
         program.guarded_by_rank(step.ref()) == diagnose::RankTest::none;
}

}  // namespace

std::vector<CallRef> steps_on_result_of(const Program& program, FunctionRef evaluation) {
  std::vector<CallRef> out;
  if (!evaluation) return out;
  for (const CallRef& step : program.calls_named("step")) {
    if (!all_ranks_step(program, step) || program.enclosing_function(step.ref()) == evaluation)
      continue;
    const auto& sources = program.sources(step.positional(0));
    if (!sources.empty() && std::all_of(sources.begin(), sources.end(), [&](const auto& source) {
          return program.enclosing_function(source.ref) == evaluation;
        }))
      out.push_back(step);
  }
  return out;
}

std::vector<PlateauStep> steps_on_own_loss(const Program& program,
                                           const std::vector<Reduction>& reductions) {
  std::vector<PlateauStep> out;
  if (program.mentions("torchmetrics")) return out;
  for (const CallRef& step : program.calls_named("step")) {
    if (!all_ranks_step(program, step)) continue;
    const Ref body = body_around(program, step.ref());
    const FunctionRef function = program.enclosing_function(step.ref());
    const bool agrees = std::any_of(
        reductions.begin(), reductions.end(),
        [&](const Reduction& reduction) { return serves(program, reduction, function); });
    if (agrees) continue;
    for (const TrainingLoop& loop : program.training_loops()) {
      const auto& tree = body.module->tree();
      if (loop.batches.module != body.module ||
          program.enclosing_function(loop.batches) != function ||
          tree.contains(loop.batches.node, step.call->node) ||
          reduces_in(program, reductions, loop.batches))
        continue;
      const std::string name = own_sum(program, step, body, loop.batches);
      if (name.empty()) continue;
      out.push_back({step.ref(), name});
      break;
    }
  }
  return out;
}

}  // namespace bench::pitfalls
