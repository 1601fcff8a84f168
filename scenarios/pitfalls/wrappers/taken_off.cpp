#include "scenarios/pitfalls/wrappers/taken_off.hpp"

#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/reach/order.hpp"

#include <algorithm>

namespace bench::pitfalls::facts {

using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;

namespace {

bool is_module_of(Ref value, std::string_view object) {
  return value && value.kind() == Kind::attribute &&
         value.child(Field::attribute).text() == "module" &&
         value.child(Field::object).text() == object;
}

// The assignment that is the whole of the statement.
Ref assignment_in(Ref statement) {
  if (statement.kind() == Kind::assignment) return statement;
  const Ref inside = statement.with(statement.module->tree()[statement.node].first_child);
  return inside && inside.kind() == Kind::assignment ? inside : Ref{};
}

// model.module and model.module.to(device)
bool is_module_moved(const Program& program, Ref value, std::string_view object) {
  if (const CallRef moved = program.as_call(value);
      moved && moved.receiver() &&
      (moved.call->name == "to" || moved.call->name == "cuda" || moved.call->name == "eval"))
    value = moved.receiver();
  return is_module_of(value, object);
}

}  // namespace

bool is_taken_off_above(const Program& program, const CallRef& forward) {
  const Ref called{forward.module, forward.call->function};
  const auto function = program.enclosing_function(forward.ref());
  if (called.kind() != Kind::identifier || !function) return false;
  const auto asks_for_wrapper = [](const diagnose::Guard& guard) {
    return holds_any(guard.condition.text(), {"hasattr(", "isinstance("});
  };
  // The else of `if hasattr(model, "module")` is for what is bare.
  const diagnose::Def* const last = last_value_above(called, [&](const diagnose::Def& def) {
    const auto guards = program.guards(called.with(def.target));
    return std::none_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
      return !guard.holds && asks_for_wrapper(guard);
    });
  });
  if (last == nullptr || last->kind != diagnose::DefKind::assign || last->value == kNoNode ||
      !is_module_moved(program, called.with(last->value), called.text()))
    return false;
  // if hasattr(model, "module"): and no test of anything else, whose runs leave the wrapper on
  const auto guards = program.guards(called.with(last->target));
  return std::all_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
    return guard.holds && asks_for_wrapper(guard);
  });
}

bool is_after_failed_unwrapping(const CallRef& site) {
  const auto& tree = site.module->tree();
  const diagnose::NodeId handler = tree.ancestor(site.call->node, Kind::except_clause);
  if (handler == kNoNode) return false;
  const Ref function{site.module, site.call->function};
  const auto given = arguments_of(site);
  // The same call, of what stands inside.
  const auto is_tried = [&](const CallRef& other) {
    const auto tried = arguments_of(other);
    return Ref{other.module, other.call->function}.text() == function.text() &&
           std::any_of(given.begin(), given.end(), [&](Ref argument) {
             return argument.kind() == Kind::identifier &&
                    std::any_of(tried.begin(), tried.end(), [&](Ref each) {
                      return each.text() == std::string(argument.text()) + ".module";
                    });
           });
  };
  const auto calls = calls_in({site.module, tree.child_at(tree[handler].parent, 0)});
  return std::any_of(calls.begin(), calls.end(), is_tried);
}

bool is_taken_off_at_once(const Program& program, const diagnose::Wrap& wrap) {
  const Ref call = diagnose::made_at(program, wrap.call).ref();
  const auto& tree = call.module->tree();
  const Ref assignment = call.with(tree[call.node].parent);
  if (is_module_of(assignment, call.text())) return true;
  if (assignment.kind() != Kind::assignment) return false;
  const Ref name = assignment.child(Field::left);
  const Ref outer = assignment.with(tree[assignment.node].parent);
  const Ref statement = outer.kind() == Kind::expression_statement ? outer : assignment;
  const auto next = tree[statement.node].next_sibling;
  if (next == kNoNode) return false;
  const Ref unwrapping = assignment_in(statement.with(next));
  return unwrapping && unwrapping.child(Field::left).text() == name.text() &&
         is_module_of(unwrapping.child(Field::right), name.text());
}

}  // namespace bench::pitfalls::facts
