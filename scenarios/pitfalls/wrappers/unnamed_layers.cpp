#include "scenarios/pitfalls/wrappers/unnamed_layers.hpp"

#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace bench::pitfalls {

using diagnose::ClassRef;
using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;
using diagnose::Wrapper;

namespace {

// The loop whose items the call gives.
Ref loop_over(const CallRef& call) {
  const auto& tree = call.module->tree();
  for (NodeId at = call.call->node; at != kNoNode; at = tree[at].parent) {
    const Kind kind = tree[at].kind;
    if (kind == Kind::for_statement) return call.ref().with(at);
    if (kind == Kind::block || kind == Kind::function) return {};
  }
  return {};
}

bool switches_gradients(Ref loop) {
  return loop && holds_any(loop.text(), {"requires_grad = ", "requires_grad=", "requires_grad_("});
}

// getattr(self, f"{kind}_head")
bool looks_up_by_part(const Program& program, const CallRef& call) {
  const Ref name = call.positional(1);
  return call.call->name == "getattr" && call.positional(0).text() == "self" && name &&
         (!program.evaluate(name).is_string() || program.evaluate(name).is_default);
}

// for each in self.children() outside of what sets the weights at the start.
bool goes_over_layers(const Program& program, const CallRef& call) {
  const std::string_view name = call.call->name;
  if (name != "children" && name != "named_children") return false;
  const auto function = program.enclosing_function(call.ref());
  return function && !says_any(function.function->name, {"init", "reset"});
}

bool is_unnamed_use(const Program& program, const CallRef& call) {
  if (looks_up_by_part(program, call)) return true;
  const Ref receiver = call.receiver();
  if (!receiver) return false;
  if (receiver.text() == "self._modules") return true;
  if (receiver.text() != "self") return false;
  const std::string_view name = call.call->name;
  if (name == "requires_grad_") return program.is_literal_false(call.positional(0));
  if (name == "parameters" || name == "named_parameters")
    return switches_gradients(loop_over(call));
  return goes_over_layers(program, call);
}

}  // namespace

bool handles_layers_unnamed(const Program& program, ClassRef cls) {
  std::vector<ClassRef> family = program.lineage(cls);
  const auto& derived = program.derived_of(cls);
  family.insert(family.end(), derived.begin(), derived.end());
  return std::any_of(family.begin(), family.end(), [&](const ClassRef& each) {
    const auto calls = facts::calls_in({each.module, each.cls->body});
    return std::any_of(calls.begin(), calls.end(),
                       [&](const CallRef& call) { return is_unnamed_use(program, call); });
  });
}

bool freezes_layers_unnamed(const Program& program) {
  const auto is_wrapped_later = [&](Ref model) {
    const auto& wraps = program.wraps();
    return std::any_of(wraps.begin(), wraps.end(), [&](const diagnose::Wrap& wrap) {
      return wrap.kind == Wrapper::ddp && wrap.module &&
             (program.same_variable(model, wrap.module) || model.text() == wrap.module.text());
    });
  };
  for (const CallRef& call : program.calls_named("named_parameters")) {
    const Ref loop = loop_over(call);
    if (switches_gradients(loop) && call.receiver() && call.receiver().text() != "self" &&
        facts::contains(loop.text(), "if ") &&
        (is_wrapped_later(call.receiver()) || facts::is_parameter(program, call.receiver())))
      return true;
  }
  for (const CallRef& call : program.calls_named("parameters"))
    if (call.receiver() && is_wrapped_later(call.receiver()) && switches_gradients(loop_over(call)))
      return true;
  for (const CallRef& call : program.calls_named("requires_grad_"))
    if (call.receiver() && is_wrapped_later(call.receiver()) &&
        program.is_literal_false(call.positional(0)))
      return true;
  return false;
}

}  // namespace bench::pitfalls
