#include "scenarios/pitfalls/reach/order.hpp"

#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Guard;

bool only_runs_before(const Program& program, Ref first, Ref second) {
  return program.runs_before(first, second) && !program.runs_before(second, first);
}

bool runs_in(const Program& program, Ref loop, Ref node) {
  if (node.module == loop.module && node.module->tree().contains(loop.node, node.node)) return true;
  const auto function = program.enclosing_function(node);
  if (!function || function == program.enclosing_function(loop)) return false;
  const auto reached = program.reached(loop);
  return std::find(reached.begin(), reached.end(), function) != reached.end();
}

Ref place_in(const Program& program, Ref subtree, Ref node) {
  for (const Ref place : diagnose::places_of(program, node))
    if (place.module == subtree.module && subtree.module->tree().contains(subtree.node, place.node))
      return place;
  return {};
}

bool never_both(const Program& program, Ref a, Ref b) {
  if (facts::exclusive(a, b)) return true;
  const auto others = diagnose::places_of(program, b);
  for (const Ref one : diagnose::places_of(program, a))
    for (const Ref other : others)
      if (one.module == other.module && facts::exclusive(one, other)) return true;
  return false;
}

bool runs_wherever(const Program& program, Ref node, Ref other) {
  const auto around_node = program.guards(node);
  const auto around_other = program.guards(other);
  return std::all_of(around_node.begin(), around_node.end(), [&](const Guard& guard) {
    return std::any_of(around_other.begin(), around_other.end(), [&](const Guard& each) {
      return each.condition.text() == guard.condition.text() && each.holds == guard.holds;
    });
  });
}

const diagnose::Def* last_value_above(Ref object,
                                      const std::function<bool(const diagnose::Def&)>& counts) {
  const diagnose::Module& module = *object.module;
  const bool is_attribute = object.kind() == diagnose::Kind::attribute;
  const Ref name = is_attribute ? object.child(diagnose::Field::attribute) : object;
  const diagnose::Def* last = nullptr;
  for (const std::uint32_t index : module.defs_of(name.text(), is_attribute)) {
    const diagnose::Def& def = module.defs()[index];
    if (def.target < object.node && module.text(def.target) == object.text() &&
        module.function_of(def.target) == module.function_of(object.node) &&
        (!counts || counts(def)))
      last = &def;
  }
  return last;
}

}  // namespace bench::pitfalls
