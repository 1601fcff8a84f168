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

}  // namespace bench::pitfalls
