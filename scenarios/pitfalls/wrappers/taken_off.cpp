#include "scenarios/pitfalls/wrappers/taken_off.hpp"

#include "diagnose/model/made_at.hpp"

#include <algorithm>
#include <cstdint>

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
  const auto& module = *forward.module;
  const auto& defs = module.defs_of(called.text(), false);
  return std::any_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
    const diagnose::Def& def = module.defs()[index];
    return def.kind == diagnose::DefKind::assign && def.value != kNoNode &&
           def.target < called.node &&
           program.enclosing_function(called.with(def.target)) == function &&
           is_module_moved(program, called.with(def.value), called.text());
  });
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
