#include "scenarios/pitfalls/fixed_epoch.hpp"

#include "scenarios/pitfalls/facts.hpp"
#include "scenarios/pitfalls/variables.hpp"

#include <algorithm>
#include <string>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;

namespace {

// In the loop over epochs itself: what is set above it stays the same in all of them.
bool is_round_of_training(const Program& program, Ref node) {
  const Ref round = program.innermost_loop(node);
  const auto& loops = program.training_loops();
  return round && std::any_of(loops.begin(), loops.end(), [&](const diagnose::TrainingLoop& loop) {
           return loop.epochs == round && loop.epochs != loop.batches;
         });
}

// args.seed, getattr(config, "seed", 0), self.start_epoch: an option that no line gives a value in
// a loop.
bool is_fixed_option(const Program& program, Ref epoch) {
  const CallRef read = program.as_call(epoch);
  const bool is_read = read && (read.call->name == "getattr" || read.call->name == "get");
  if (!is_read && epoch.kind() != Kind::attribute && epoch.kind() != Kind::identifier) return false;
  const std::string name = facts::lowered(epoch.text());
  if (!facts::contains(name, "seed") && !name.ends_with(".start_epoch")) return false;
  const Ref member = epoch.child(Field::attribute);
  const auto& defs = epoch.module->defs_of(member ? member.text() : epoch.text(), bool{member});
  return std::none_of(defs.begin(), defs.end(), [&](const std::uint32_t index) {
    const diagnose::Def& def = epoch.module->defs()[index];
    return def.kind == diagnose::DefKind::augmented || def.kind == diagnose::DefKind::loop ||
           program.innermost_loop(epoch.with(def.target));
  });
}

}  // namespace

namespace {

// self.step = 0 in __init__, and no line gives an attribute of that name another value.
bool is_set_once(const Program& program, Ref epoch) {
  const Ref name = epoch.child(Field::attribute);
  const auto values = values_of(program, epoch);
  if (values.size() != 1 || epoch.module->defs_of(name.text(), true).size() != 1) return false;
  const diagnose::Def& def = *values.front();
  const Ref value = epoch.with(def.value);
  return def.kind == diagnose::DefKind::assign && def.element < 0 && value &&
         !program.innermost_loop(value) &&
         (value.kind() == Kind::integer || is_round_of_training(program, epoch));
}

}  // namespace

bool never_changes(const Program& program, Ref epoch) {
  if (epoch.kind() == Kind::integer || is_fixed_option(program, epoch)) return true;
  if (!is_variable(epoch)) return false;
  if (epoch.kind() == Kind::attribute) return is_set_once(program, epoch);
  const auto inside = program.enclosing_function(epoch);
  const auto& module = *epoch.module;
  Ref value;
  for (const std::uint32_t index : module.defs_of(epoch.text(), false)) {
    const diagnose::Def& def = module.defs()[index];
    const Ref target = epoch.with(def.target);
    if (program.enclosing_function(target) != inside) {
      if (!inside || !program.enclosing_function(target))
        return false;  // perhaps the same variable
      continue;
    }
    if (value || def.kind != diagnose::DefKind::assign || def.element >= 0) return false;
    value = epoch.with(def.value);
  }
  if (!value || program.innermost_loop(value)) return false;
  return value.kind() == Kind::integer || is_round_of_training(program, epoch);
}

}  // namespace bench::pitfalls
