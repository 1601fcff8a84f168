#include "scenarios/pitfalls/wrappers/wrapping_callers.hpp"

#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/wrappers/wrapped_above.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::DefKind;
using diagnose::FunctionRef;

namespace {

// model = unwrap(model) in the function: the name is no longer what a caller has given.
bool is_given_anew(const FunctionRef& function, Ref parameter) {
  const auto& module = *function.module;
  const auto& indices = module.defs_of(parameter.text(), false);
  return std::any_of(indices.begin(), indices.end(), [&](std::uint32_t index) {
    const auto& def = module.defs()[index];
    return def.kind != DefKind::parameter &&
           module.tree().contains(function.function->body, def.target);
  });
}

// if self.val_loader is None: return -- asks for the data, and means one thing for every caller.
bool asks_for_own_part(Ref condition) {
  const std::string_view text = condition.text();
  return condition.kind() == diagnose::Kind::comparison && text.starts_with("self.") &&
         (text.ends_with(" is None") || text.ends_with(" is not None"));
}

bool stands_under_a_test(const Program& program, const FunctionRef& function, Ref use) {
  const auto& tree = function.module->tree();
  const auto guards = program.guards(use);
  return tree.ancestor(use.node, diagnose::Kind::try_statement) != diagnose::kNoNode ||
         tree.ancestor(use.node, diagnose::Kind::conditional) != diagnose::kNoNode ||
         std::any_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
           return tree.contains(function.function->body, guard.condition.node) &&
                  !asks_for_own_part(guard.condition);
         });
}

}  // namespace

bool is_wrapped_by_one_caller(const Program& program, Ref use, Ref object,
                              const std::function<bool(Ref use, Ref object)>& holds) {
  if (!facts::is_parameter(program, object)) return false;
  const FunctionRef function = program.enclosing_function(use);
  if (!function || is_given_anew(function, object) || stands_under_a_test(program, function, use))
    return false;
  const auto& sites = program.call_sites(function);
  const bool several = sites.size() > 1;
  return std::any_of(sites.begin(), sites.end(), [&](const CallRef& site) {
    const Ref given = facts::argument_for(site, function, object.text());
    const auto holds_it = [&](Ref value) { return holds(value, value); };
    // model = ddp_model in one branch above the call, and another model in the other one.
    return given && diagnose::stands_for_object(given) &&
           ((several && holds(site.ref(), given)) ||
            is_wrapped_in_one_branch(program, given, holds_it)) &&
           !facts::only_without_distribution(program, site.ref()) &&
           facts::is_reachable(program, site.ref());
  });
}

}  // namespace bench::pitfalls
