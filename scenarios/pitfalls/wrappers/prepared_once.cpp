#include "scenarios/pitfalls/wrappers/prepared_once.hpp"

#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/steps/reduced_gradients.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::ForwardCall;
using diagnose::Kind;
using diagnose::Wrap;
using diagnose::Wrapper;

namespace {

Ref callee_of(const ForwardCall& forward) {
  return forward.call.ref().with(forward.call.call->function);
}

bool is_in_same_round(const Program& program, const CallRef& a, const CallRef& b) {
  return a.module == b.module &&
         program.enclosing_function(a.ref()) == program.enclosing_function(b.ref()) &&
         program.innermost_loop(a.ref()) == program.innermost_loop(b.ref());
}

// The forward pass stands in the function and the round of both backward passes, above the first.
bool is_above(const Program& program, const ForwardCall& forward, const CallRef& first) {
  return is_in_same_round(program, forward.call, first) &&
         forward.call.call->node < first.call->node;
}

// Something runs the wrapper between the two, itself or handed over to a function.
bool is_run_between(const Program& program, const Wrap* wrap, const CallRef& first,
                    const CallRef& second) {
  const auto& calls = first.module->calls();
  return std::any_of(calls.begin(), calls.end(), [&](const diagnose::Call& each) {
    if (each.node <= first.call->node || each.node >= second.call->node) return false;
    const CallRef call{first.module, &each};
    if (program.wrap_of({call.module, each.function}) == wrap) return true;
    const auto given = facts::arguments_of(call);
    return std::any_of(given.begin(), given.end(),
                       [&](Ref argument) { return program.wrap_of(argument) == wrap; });
  });
}

// requires_grad_(False), requires_grad_(not on); loss.requires_grad_() only switches it on.
bool switches_off(const Program& program, const CallRef& call) {
  const Ref value = call.argument(0, "requires_grad");
  return value && !program.is_literal_true(value);
}

// Switches of requires_grad may keep the wrapper out of one of the two losses; gradients that the
// program reduces itself need no second round of the reducer.
bool may_be_cared_for(const Program& program) {
  for (const char* text :
       {"requires_grad = ", "set_requires_grad", "toggle_grad", "freeze(", "no_sync"})
    if (program.mentions(text)) return true;
  const auto switches = program.calls_named("requires_grad_");
  return std::any_of(switches.begin(), switches.end(),
                     [&](const CallRef& call) { return switches_off(program, call); }) ||
         reduces_gradients(program);
}

// Neither in a comprehension or a loop, nor in a function that is called for several models.
bool is_made_once(const Program& program, const CallRef& call, int depth = 0) {
  const auto& tree = call.module->tree();
  for (auto at = tree[call.call->node].parent; at != diagnose::kNoNode; at = tree[at].parent) {
    const Kind kind = tree[at].kind;
    if (kind == Kind::comprehension || kind == Kind::lambda || kind == Kind::while_statement ||
        kind == Kind::for_statement)
      return false;
    if (kind == Kind::function) break;
  }
  const auto function = program.enclosing_function(call.ref());
  if (!function) return true;
  const auto& sites = program.call_sites(function);
  if (sites.size() > 1 || depth > 8) return false;
  return sites.empty() || is_made_once(program, sites.front(), depth + 1);
}

// One wrap may make several models: those of wrap(a), wrap(b), and of [DDP(net) for net in nets].
bool run_one_model(const Program& program, const ForwardCall& a, const ForwardCall& b) {
  if (a.wrap != b.wrap) return false;
  const Ref one = callee_of(a);
  const Ref other = callee_of(b);
  return is_made_once(program, a.wrap->call) ||
         (one.kind() != Kind::subscript && one.text() == other.text() &&
          program.enclosing_function(one) == program.enclosing_function(other));
}

// Whether an optimizer holds the parameters of the model that the forward pass runs.
enum class Holds { no, unknown, yes };

Holds holds_model(const Program& program, const CallRef& optimizer, const ForwardCall& forward) {
  const Ref model = callee_of(forward);
  const Ref wrapped = forward.wrap->module;
  Holds out = Holds::unknown;
  for (const Ref argument : facts::arguments_of(optimizer))
    for (const Ref made : facts::calls_behind(program, argument)) {
      const CallRef call = program.as_call(made);
      if (!call || !call.call->name.ends_with("parameters") || !call.receiver()) continue;
      const Ref owner = call.receiver();
      if (owner.text() == model.text() || owner.text() == wrapped.text() ||
          owner.text().starts_with(std::string(model.text()) + ".") ||
          program.same_variable(owner, model) || program.same_variable(owner, wrapped) ||
          program.wrap_of(owner) == forward.wrap)
        return Holds::yes;
      out = Holds::no;
    }
  return out;
}

// optimizer.step() and scaler.step(optimizer): what makes the optimizer, if that is seen.
CallRef optimizer_of(const Program& program, const CallRef& step) {
  for (const Ref object : {step.receiver(), step.positional(0)}) {
    const CallRef made = object ? program.made_by(object) : CallRef{};
    if (made && made.call->api == Api::optimizer) return made;
  }
  return {};
}

// optimizer.zero_grad() or model.zero_grad() between the second backward pass and the step.
bool is_zeroed_between(const Program& program, const ForwardCall& forward, const CallRef& second,
                       const CallRef& step) {
  const auto zeroes = program.calls_named("zero_grad");
  return std::any_of(zeroes.begin(), zeroes.end(), [&](const CallRef& zero) {
    if (zero.module != step.module || zero.call->node < second.call->node ||
        zero.call->node > step.call->node || !zero.receiver())
      return false;
    const std::string_view object = zero.receiver().text();
    return object == step.receiver().text() || object == callee_of(forward).text() ||
           (step.positional(0) && object == step.positional(0).text());
  });
}

// The gradients that the second backward pass leaves in the model come to a step below it: they
// are not those of a discriminator that the generator's loss passes through, which the next round
// zeroes. Where the optimizer is made out of sight the loss has to run this model alone.
bool is_stepped_below(const Program& program, const ForwardCall& forward,
                      const std::vector<ForwardCall>& after, const CallRef& second) {
  const bool is_alone = std::all_of(after.begin(), after.end(), [&](const ForwardCall& each) {
    return each.wrap == forward.wrap;
  });
  bool is_any_seen = false;
  for (const CallRef& step : program.calls_named("step")) {
    if (step.module != second.module || !step.receiver() ||
        program.enclosing_function(step.ref()) != program.enclosing_function(second.ref()) ||
        says_any(step.receiver().text(), {"sched"}))
      continue;
    is_any_seen = true;
    if (step.call->node < second.call->node || is_zeroed_between(program, forward, second, step))
      continue;
    const CallRef optimizer = optimizer_of(program, step);
    const Holds holds = optimizer ? holds_model(program, optimizer, forward) : Holds::unknown;
    if (holds == Holds::yes || (holds == Holds::unknown && is_alone)) return true;
  }
  return !is_any_seen && is_alone;
}

bool is_synchronised_once(const Program& program, const std::vector<ForwardCall>& before,
                          const std::vector<ForwardCall>& after, const ForwardCall& forward,
                          const CallRef& first, const CallRef& second) {
  if (forward.wrap->kind != Wrapper::ddp || program.under_no_grad(forward.call.ref())) return false;
  const bool is_prepared = std::any_of(before.begin(), before.end(), [&](const ForwardCall& each) {
    return run_one_model(program, each, forward) && !program.under_no_grad(each.call.ref());
  });
  return is_prepared &&
         std::all_of(after.begin(), after.end(),
                     [&](const ForwardCall& each) {
                       return each.wrap != forward.wrap || is_above(program, each, first);
                     }) &&
         !is_run_between(program, forward.wrap, first, second) &&
         is_stepped_below(program, forward, after, second);
}

}  // namespace

bool is_prepared_once(const Program& program, const std::vector<ForwardCall>& before,
                      const std::vector<ForwardCall>& after, const CallRef& first,
                      const CallRef& second) {
  // backward(inputs=...) leaves gradients in those alone.
  if (first.keyword("inputs") || second.keyword("inputs") ||
      program.guards(first.ref()) != program.guards(second.ref()) || may_be_cared_for(program))
    return false;
  return std::any_of(after.begin(), after.end(), [&](const ForwardCall& each) {
    return is_synchronised_once(program, before, after, each, first, second);
  });
}

}  // namespace bench::pitfalls
