// Branches of a switch that is written out in a script: ddp = False, teacher = None.
#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/reach/decided.hpp"
#include "scenarios/pitfalls/reach/offered_choices.hpp"
#include "scenarios/pitfalls/reach/switches.hpp"
#include "scenarios/pitfalls/reach/unconditional.hpp"

#include <algorithm>

namespace bench::pitfalls::facts {

using diagnose::Def;
using diagnose::Kind;
using diagnose::Module;
using diagnose::NodeId;

namespace {

// exec(open("configurator.py").read()) below, as in nanoGPT and what came of it: what stands above
// are defaults, which a config file or the command line may change.
bool is_run_over(const Program& program, const Module& module, const Def& def) {
  const auto calls = program.calls_named("exec");
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    return call.module == &module && call.call->scope == 0 && !call.receiver() &&
           call.call->node > def.target;
  });
}

// The name's only definition in its file, which no other file can change: config.ddp = True.
const Def* only_in_file(const Program& program, Ref name) {
  const Module& module = *name.module;
  const auto& defs = module.defs_of(name.text(), false);
  if (defs.size() != 1) return nullptr;
  const auto is_set = [&](const Module* each) { return !each->defs_of(name.text(), true).empty(); };
  const auto& modules = program.modules();
  if (std::any_of(modules.begin(), modules.end(), is_set)) return nullptr;
  const Def& def = module.defs()[defs.front()];
  return def.scope == 0 && !is_run_over(program, module, def) ? &def : nullptr;
}

// The only definition in the function that the name stands in, nested functions included.
const Def* only_in_function(const Program& program, Ref name) {
  const diagnose::FunctionRef function = program.enclosing_function(name);
  if (!function) return nullptr;
  const Module& module = *name.module;
  const Def* found = nullptr;
  for (const auto index : module.defs_of(name.text(), false)) {
    const Def& def = module.defs()[index];
    if (!module.tree().contains(function.function->node, def.target)) continue;
    if (found != nullptr) return nullptr;
    found = &def;
  }
  return found != nullptr && found->scope == function.function->node ? found : nullptr;
}

// ckpt_path = None, resume_from = None: what to begin with is filled in by whoever runs the script,
// and the branch below stands ready for it. profile_file = None switches something off.
bool is_to_be_filled_in(std::string_view name) {
  return says_any(name, {"ckpt", "checkpoint", "resume", "pretrain", "weights"}) ||
         (says_any(name, {"model", "backbone", "encoder"}) && says_any(name, {"path", "file"}));
}

// The None, True or False that a name is from its only assignment on.
Ref constant_of(const Program& program, Ref name) {
  if (name.kind() != Kind::identifier || is_parameter(program, name)) return {};
  const Def* def = only_in_function(program, name);
  if (def == nullptr) def = only_in_file(program, name);
  if (def == nullptr || def->kind != diagnose::DefKind::assign || def->element >= 0) return {};
  const Ref value{name.module, def->value};
  const Kind kind = value.kind();
  if (kind != Kind::none_literal && kind != Kind::true_literal && kind != Kind::false_literal)
    return {};
  if (kind == Kind::none_literal && is_to_be_filled_in(name.text())) return {};
  return is_unconditional(program, value) ? value : Ref{};
}

// 'out' or 'merge' in name: a text that is not empty holds, whatever stands behind it.
bool holds_by_a_text(const Program& program, Ref condition) {
  if (condition.kind() == Kind::string) return !program.string(condition).value_or("").empty();
  return condition.kind() == Kind::boolean &&
         condition.module->tree()[condition.node].op == diagnose::Op::logical_or &&
         (holds_by_a_text(program, condition.child(diagnose::Field::left)) ||
          holds_by_a_text(program, condition.child(diagnose::Field::right)));
}

bool never_holds(const Program& program, const diagnose::Guard& guard) {
  if (!guard.holds && holds_by_a_text(program, guard.condition)) return true;
  const auto& tree = guard.condition.module->tree();
  for (NodeId id = guard.condition.node; id < tree[guard.condition.node].last; ++id) {
    const Ref value = constant_of(program, guard.condition.with(id));
    if (value && decided(program, guard.condition, guard.condition.with(id).text(),
                         program.evaluate(value)) == !guard.holds)
      return true;
  }
  return false;
}

}  // namespace

bool is_switched_off(const Program& program, Ref node) {
  // The only call of the node's function may stand in such a branch.
  for (const Ref place : diagnose::places_of(program, node))
    for (const diagnose::Guard& guard : program.guards(place))
      if (never_holds(program, guard) || is_switched_off_in_object(program, guard) ||
          is_for_no_choice(program, guard))
        return true;
  return false;
}

}  // namespace bench::pitfalls::facts
