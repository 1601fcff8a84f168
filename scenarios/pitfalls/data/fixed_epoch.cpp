#include "scenarios/pitfalls/data/fixed_epoch.hpp"

#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/variables.hpp"
#include "scenarios/pitfalls/reach/order.hpp"

#include <algorithm>
#include <string>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;

namespace {

// In the loop over epochs: what is set above it, and read anew in none, stays the same in all.
bool is_round_of_training(const Program& program, Ref node, Ref value) {
  const auto around = program.loops_around(node);
  const Ref round = around.empty() ? Ref{} : around.front();
  const auto& loops = program.training_loops();
  return round && !runs_in(program, round, value) &&
         std::any_of(loops.begin(), loops.end(), [&](const diagnose::TrainingLoop& loop) {
           return loop.epochs == round && loop.epochs != loop.batches;
         });
}

constexpr int kCallers = 3;

// What the only call of the function passes for its parameter.
Ref handed_down(const Program& program, Ref parameter) {
  const auto& sites = program.call_sites(program.enclosing_function(parameter));
  return sites.size() == 1
             ? diagnose::seen_in(program, parameter, program.enclosing_function(sites[0].ref()))
             : Ref{};
}

// args.seed, getattr(config, "seed", 0), self.start_epoch: an option that no line gives a value in
// a loop.
bool is_fixed_option(const Program& program, Ref epoch) {
  const CallRef read = program.as_call(epoch);
  const bool is_read = read && (read.call->name == "getattr" || read.call->name == "get");
  if (!is_read && !diagnose::stands_for_object(epoch)) return false;
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

// The only line that gives the name a value, where the name stands or in the callers that hand it
// down; empty where there are others, or a loop runs the line again and again.
Ref only_value(const Program& program, Ref epoch, int depth = 0) {
  const auto inside = program.enclosing_function(epoch);
  const auto& module = *epoch.module;
  const bool is_own = facts::is_parameter(program, epoch);
  Ref value;
  bool is_written_in_call = false;
  for (const std::uint32_t index : module.defs_of(epoch.text(), false)) {
    const diagnose::Def& def = module.defs()[index];
    const Ref target = epoch.with(def.target);
    if (program.enclosing_function(target) != inside) {
      if (is_own || def.kind == diagnose::DefKind::parameter) continue;
      if (!inside || !program.enclosing_function(target)) return {};  // perhaps the same variable
      continue;
    }
    const bool is_handed = def.kind == diagnose::DefKind::parameter && depth < kCallers;
    if (value || (def.kind != diagnose::DefKind::assign && !is_handed) || def.element >= 0)
      return {};
    value = is_handed ? handed_down(program, epoch) : epoch.with(def.value);
    if (is_handed && value.kind() == Kind::identifier)
      value = only_value(program, value, depth + 1);
    if (!value) return {};
    is_written_in_call = is_handed && value.kind() == Kind::integer;
  }
  return value && (is_written_in_call || !program.innermost_loop(value)) ? value : Ref{};
}

// self.step = 0 in __init__, and no line gives an attribute of that name another value.
bool is_set_once(const Program& program, Ref epoch) {
  const Ref name = epoch.child(Field::attribute);
  const auto values = values_of(program, epoch);
  if (values.size() != 1 || epoch.module->defs_of(name.text(), true).size() != 1) return false;
  const diagnose::Def& def = *values.front();
  const Ref value = epoch.with(def.value);
  return def.kind == diagnose::DefKind::assign && def.element < 0 && value &&
         !program.innermost_loop(value) &&
         (value.kind() == Kind::integer || is_round_of_training(program, epoch, value));
}

}  // namespace

bool never_changes(const Program& program, Ref epoch) {
  if (epoch.kind() == Kind::integer || is_fixed_option(program, epoch)) return true;
  if (!is_variable(epoch)) return false;
  if (epoch.kind() == Kind::attribute) return is_set_once(program, epoch);
  const Ref value = only_value(program, epoch);
  return value && (value.kind() == Kind::integer || is_round_of_training(program, epoch, value));
}

}  // namespace bench::pitfalls
