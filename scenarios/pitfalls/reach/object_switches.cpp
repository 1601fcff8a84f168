// Switches that an object keeps from its construction: `if self.distill:` in a method, where every
// object of the class is made with distill=False, or leaves it so.
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/reach/switches.hpp"
#include "scenarios/pitfalls/reach/unconditional.hpp"

#include <algorithm>

namespace bench::pitfalls::facts {

using diagnose::ClassRef;
using diagnose::Def;
using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::Module;
using diagnose::NodeId;

namespace {

bool is_of_self(Ref attribute) {
  return attribute.kind() == Kind::attribute && attribute.child(Field::object).text() == "self";
}

// The attribute's only assignment in its class. None where it is set from outside too:
// trainer.distill = True, setattr(trainer, ...).
const Def* only_in_class(const Program& program, ClassRef cls, std::string_view name) {
  if (!program.calls_named("setattr").empty()) return nullptr;
  const Def* found = nullptr;
  for (const Module* module : program.modules())
    for (const auto index : module->defs_of(name, true)) {
      const Def& def = module->defs()[index];
      const Ref target{module, def.target};
      if (!is_of_self(target)) return nullptr;
      if (program.enclosing_class(target) != cls) continue;
      if (found != nullptr) return nullptr;
      found = &def;
    }
  return found;
}

// What the parameter is in every call of the function; empty where a call cannot be told, or where
// two give different values.
std::vector<Ref> given_at_all_sites(const Program& program, FunctionRef function,
                                    std::string_view name) {
  std::vector<Ref> out;
  for (const CallRef& site : program.call_sites(function)) {
    const Ref given = given_for(function, name, site);
    if (!given) return {};
    out.push_back(given);
  }
  return out;
}

std::vector<Ref> values_of(const Program& program, ClassRef cls, Ref attribute) {
  const Def* def = only_in_class(program, cls, attribute.child(Field::attribute).text());
  if (def == nullptr || def->kind != diagnose::DefKind::assign || def->element >= 0) return {};
  const Ref value{cls.module, def->value};
  const FunctionRef init = program.enclosing_function(value);
  if (!init || init.function->name != "__init__" || !is_unconditional(program, value)) return {};
  if (!is_kept_parameter(init, value)) return {};
  return given_at_all_sites(program, init, value.text());
}

bool keeps_out(const Program& program, const diagnose::Guard& guard, Ref attribute, ClassRef cls) {
  const auto given = values_of(program, cls, attribute);
  return !given.empty() && std::all_of(given.begin(), given.end(), [&](Ref each) {
    return leads_past(program, guard, attribute.text(), program.evaluate(each));
  });
}

}  // namespace

bool is_switched_off_in_object(const Program& program, const diagnose::Guard& guard) {
  const auto& tree = guard.condition.module->tree();
  for (NodeId id = guard.condition.node; id < tree[guard.condition.node].last; ++id) {
    const Ref attribute = guard.condition.with(id);
    if (!is_of_self(attribute)) continue;
    const ClassRef cls = program.enclosing_class(attribute);
    // An object of a derived class, or one that the class itself is handed on for, is made
    // elsewhere.
    if (cls && program.derived_of(cls).empty() && program.handed_on(cls).empty() &&
        keeps_out(program, guard, attribute, cls))
      return true;
  }
  return false;
}

}  // namespace bench::pitfalls::facts
