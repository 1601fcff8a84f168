#include "scenarios/pitfalls/program/variables.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Def;
using diagnose::Field;
using diagnose::Kind;

namespace {

bool is_own_attribute(Ref at) {
  return at.kind() == Kind::attribute && at.child(Field::object).text() == "self";
}

}  // namespace

bool is_variable(Ref at) { return at.kind() == Kind::identifier || is_own_attribute(at); }

bool shares_variable(const Program& program, Ref variable, Ref node) {
  if (variable.module != node.module) return false;
  return is_own_attribute(variable)
             ? program.enclosing_class(variable) == program.enclosing_class(node)
             : program.enclosing_function(variable) == program.enclosing_function(node);
}

std::vector<const Def*> values_of(const Program& program, Ref variable) {
  const bool is_attribute = is_own_attribute(variable);
  const Ref name = is_attribute ? variable.child(Field::attribute) : variable;
  std::vector<const Def*> out;
  for (const std::uint32_t index : variable.module->defs_of(name.text(), is_attribute)) {
    const Def& def = variable.module->defs()[index];
    if (!is_attribute || program.same_variable(variable, variable.with(def.target)))
      out.push_back(&def);
  }
  return out;
}

bool may_change_between(const Program& program, Ref variable, Ref from, Ref use) {
  const auto& module = *variable.module;
  const auto maker = module.function_of(from.node);
  const auto reader = module.function_of(use.node);
  const auto values = values_of(program, variable);
  return std::any_of(values.begin(), values.end(), [&](const Def* def) {
    if (maker == reader || !is_own_attribute(variable))
      return def->target > from.node && def->target < use.node;
    const auto writer = module.function_of(def->target);
    if (writer == maker) return def->target > from.node;
    return writer != reader || def->target < use.node;
  });
}

}  // namespace bench::pitfalls
