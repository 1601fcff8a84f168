// Branches of a switch that is written out at the top of a script: ddp = False.
#include "scenarios/pitfalls/facts.hpp"

#include <algorithm>

namespace bench::pitfalls::facts {

using diagnose::Kind;
using diagnose::Module;

namespace {

// A name of the file that is False or True from its only assignment on.
Kind constant_of(const Program& program, Ref name) {
  if (name.kind() != Kind::identifier || is_parameter(program, name)) return Kind::other;
  const Module& module = *name.module;
  const auto& defs = module.defs_of(name.text(), false);
  if (defs.size() != 1) return Kind::other;
  const auto& def = module.defs()[defs.front()];
  if (def.kind != diagnose::DefKind::assign || def.scope != 0) return Kind::other;
  const Ref value{&module, def.value};
  const auto is_set = [&](const Module* each) { return !each->defs_of(name.text(), true).empty(); };
  const auto& modules = program.modules();
  // config.ddp = True in another file
  if (!program.guards(value).empty() || std::any_of(modules.begin(), modules.end(), is_set))
    return Kind::other;
  return value.kind();
}

bool never_holds(const Program& program, const diagnose::Guard& guard) {
  Ref condition = guard.condition;
  bool holds = guard.holds;
  if (condition.kind() == Kind::not_expression) {
    condition = condition.child(diagnose::Field::argument);
    holds = !holds;
  }
  return constant_of(program, condition) == (holds ? Kind::false_literal : Kind::true_literal);
}

}  // namespace

bool is_switched_off(const Program& program, Ref node) {
  const auto guards = program.guards(node);
  return std::any_of(guards.begin(), guards.end(),
                     [&](const diagnose::Guard& guard) { return never_holds(program, guard); });
}

}  // namespace bench::pitfalls::facts
