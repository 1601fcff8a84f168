#include "scenarios/pitfalls/wrappers/runs_parameter.hpp"

#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/wrappers/bare_calls.hpp"
#include "scenarios/pitfalls/wrappers/frozen.hpp"
#include "scenarios/pitfalls/wrappers/handed_to_training.hpp"
#include "scenarios/pitfalls/wrappers/idle_wrapper.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace bench::pitfalls {

using diagnose::Def;
using diagnose::DefKind;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::kNoNode;

namespace {

constexpr int kDeepest = 3;  // functions that hand the model on

// The parameter, and inner after inner = model.module if isinstance(model, DDP) else model.
std::vector<std::string> names_of(FunctionRef function, std::string_view parameter) {
  std::vector<std::string> out{std::string(parameter)};
  const auto& tree = function.module->tree();
  const std::string below = out.front() + ".module";
  for (const Def& def : function.module->defs()) {
    if (def.kind != DefKind::assign || def.value == kNoNode || def.is_attribute ||
        !tree.contains(function.function->body, def.target))
      continue;
    const std::string_view value = tree.text(def.value);
    const bool chooses = tree[def.value].kind == Kind::conditional &&
                         value.starts_with(below + " if ") && value.ends_with(" " + out.front());
    if (chooses || value == out.front() || value == below) out.emplace_back(tree.text(def.target));
  }
  return out;
}

bool runs(const Program& program, FunctionRef function, std::string_view parameter, int depth) {
  const auto names = names_of(function, parameter);
  const auto is_model = [&](Ref node) {
    return node && std::find(names.begin(), names.end(), node.text()) != names.end();
  };
  for (const CallRef& call : facts::calls_in({function.module, function.function->body})) {
    if (program.under_no_grad(call.ref())) continue;
    if (is_model({call.module, call.call->function}) ||
        (is_model(call.receiver()) && runs_layers(call)))
      return true;
    const FunctionRef next = depth < kDeepest ? program.callee(call) : FunctionRef{};
    if (!next || next == function) continue;
    for (const diagnose::Parameter& each : next.function->parameters)
      if (is_model(facts::argument_for(call, next, each.name)) &&
          runs(program, next, each.name, depth + 1))
        return true;
  }
  return false;
}

// The wrapper whose inner model the call hands to a function that runs it; empty for other calls.
Ref wrapper_of_handed(const Program& program, const CallRef& call) {
  const FunctionRef function = program.callee(call);
  if (!function) return {};
  for (const diagnose::Parameter& each : function.function->parameters) {
    const Ref given = facts::argument_for(call, function, each.name);
    const Ref wrapper = given ? wrapper_above(program, given) : Ref{};
    if (wrapper && runs(program, function, each.name, 0)) return wrapper;
  }
  return {};
}

bool is_idle(const Program& program, Ref wrapper) {
  const diagnose::Wrap* wrap = program.wrap_of(wrapper, diagnose::Wrapper::ddp);
  return wrap != nullptr && never_trains_through(program, *wrap) && !is_frozen(program, wrapper) &&
         !is_left_to_no_optimizer(program, wrapper);
}

void add_once(std::vector<FunctionRef>& out, FunctionRef function) {
  if (function && std::find(out.begin(), out.end(), function) == out.end()) out.push_back(function);
}

}  // namespace

std::vector<CallRef> handed_to_runners(const Program& program, const std::vector<Ref>& behind,
                                       const CallRef& backward) {
  // What a function returns leads past the calls in its return statements: they are looked for in
  // the functions on the way.
  std::vector<FunctionRef> functions;
  add_once(functions, program.enclosing_function(backward.ref()));
  for (const Ref node : behind) {
    add_once(functions, program.enclosing_function(node));
    add_once(functions, program.callee(program.as_call(node)));
  }
  std::vector<CallRef> out;
  for (const FunctionRef& runner : functions)
    for (const CallRef& site : program.call_sites(runner)) {
      const FunctionRef here = program.enclosing_function(site.ref());
      const bool is_on_the_way =
          std::find(behind.begin(), behind.end(), site.ref()) != behind.end() ||
          (here && std::find(functions.begin(), functions.end(), here) != functions.end());
      if (!is_on_the_way || program.under_no_grad(site.ref()) ||
          program.is_evaluation(site.ref()) ||
          facts::only_without_distribution(program, site.ref()))
        continue;
      const Ref wrapper = wrapper_of_handed(program, site);
      if (wrapper && is_idle(program, wrapper)) out.push_back(site);
    }
  return out;
}

}  // namespace bench::pitfalls
