#include "scenarios/pitfalls/metrics/evaluation_loops.hpp"

#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::FunctionRef;

bool passes_without_grad(const Program& program, Ref loop) {
  const auto calls = facts::calls_in(loop);
  return std::any_of(calls.begin(), calls.end(),
                     [&](const CallRef& call) { return program.under_no_grad(call.ref()); });
}

namespace {

// model.eval() above the loop, in its function or on the file's own level.
bool is_below_eval(const Program& program, Ref loop) {
  const auto evals = program.calls_named("eval");
  return std::any_of(evals.begin(), evals.end(), [&](const CallRef& eval) {
    return eval.module == loop.module && eval.call->node < loop.node && eval.receiver() &&
           !eval.positional(0) &&
           program.enclosing_function(eval.ref()) == program.enclosing_function(loop);
  });
}

}  // namespace

// def validate(): for batch in self.train_loader, without gradients: what the function is called
// says more than the loader's name, and so does what it does with the model.
bool stands_in_evaluation(const Program& program, Ref loop) {
  const FunctionRef function = program.enclosing_function(loop);
  return function && says_any(function.function->name, {"valid", "evaluat"}) &&
         program.is_evaluation(loop);
}

bool is_loop_of_evaluation(const Program& program, Ref loop) {
  if (is_evaluation_loop(program, loop) || stands_in_evaluation(program, loop)) return true;
  const FunctionRef function = program.enclosing_function(loop);
  const auto goes_back = [](const CallRef& call) { return call.call->name == "backward"; };
  return function && !says_any(function.function->name, {"train"}) &&
         passes_without_grad(program, loop) && is_below_eval(program, loop) &&
         !program.subtree_calls(loop.child(Field::body), goes_back);
}

namespace {

// The guard is met by a backward pass that only a phase of training comes by.
bool is_for_training(const Program& program, const CallRef& backward, Ref within) {
  const auto guards = program.guards(backward.ref());
  return std::any_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
    return guard.holds && facts::contains(guard.condition.text(), "train") &&
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

}  // namespace bench::pitfalls
