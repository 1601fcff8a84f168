#include "scenarios/pitfalls/wrappers/taken_off.hpp"

#include "diagnose/model/made_at.hpp"

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

}  // namespace

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
