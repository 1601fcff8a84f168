#include "scenarios/pitfalls/mode_of_object.hpp"

#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/switches.hpp"
#include "scenarios/pitfalls/variables.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Def;
using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Guard;
using diagnose::Kind;

namespace {

// The method runs the use, itself or in what it calls.
bool comes_to(const Program& program, FunctionRef method, FunctionRef of_use) {
  if (method == of_use) return true;
  const auto reached = program.reached({method.module, method.function->body});
  return std::find(reached.begin(), reached.end(), of_use) != reached.end();
}

bool is_switched_elsewhere(const Program& program, const Guard& guard, Ref attribute, Ref use) {
  const auto of_use = program.enclosing_function(use);
  const auto owner = program.enclosing_class(attribute);
  if (!of_use || !owner || !(program.enclosing_class(use) == owner)) return false;
  bool is_off = false;
  bool is_switched = false;
  for (const Def* def : values_of(program, attribute)) {
    if (def->kind != diagnose::DefKind::assign || def->element >= 0) return false;
    const Ref value = attribute.with(def->value);
    const auto method = program.enclosing_function(value);
    if (!method) return false;
    const bool leads_past =
        facts::leads_past(program, guard, attribute.text(), program.evaluate(value));
    if (method.function->name == "__init__") {
      is_off = leads_past;
    } else if (!leads_past) {
      if (comes_to(program, method, of_use)) return false;
      is_switched = true;
    }
  }
  return is_off && is_switched;
}

}  // namespace

bool is_wrapped_in_another_mode(const Program& program, const diagnose::Wrap& wrap, Ref use) {
  for (const Guard& guard : diagnose::guards_where_made(program, wrap.call)) {
    const auto& tree = guard.condition.module->tree();
    for (diagnose::NodeId id = guard.condition.node; id < tree[guard.condition.node].last; ++id) {
      const Ref part = guard.condition.with(id);
      if (part.kind() == Kind::attribute && part.child(Field::object).text() == "self" &&
          is_switched_elsewhere(program, guard, part, use))
        return true;
    }
  }
  return false;
}

}  // namespace bench::pitfalls
