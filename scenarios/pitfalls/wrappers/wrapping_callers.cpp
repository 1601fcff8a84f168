#include "scenarios/pitfalls/wrappers/wrapping_callers.hpp"

#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

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

bool stands_under_a_test(const Program& program, const FunctionRef& function, Ref use) {
  const auto& tree = function.module->tree();
  const auto guards = program.guards(use);
  return tree.ancestor(use.node, diagnose::Kind::try_statement) != diagnose::kNoNode ||
         tree.ancestor(use.node, diagnose::Kind::conditional) != diagnose::kNoNode ||
         std::any_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
           return tree.contains(function.function->body, guard.condition.node);
         });
}

}  // namespace

bool is_wrapped_by_one_caller(const Program& program, Ref use, Ref object,
                              const std::function<bool(Ref use, Ref object)>& holds) {
  if (!facts::is_parameter(program, object)) return false;
  const FunctionRef function = program.enclosing_function(use);
  if (!function || program.call_sites(function).size() < 2 || is_given_anew(function, object) ||
      stands_under_a_test(program, function, use))
    return false;
  const auto& sites = program.call_sites(function);
  return std::any_of(sites.begin(), sites.end(), [&](const CallRef& site) {
    const Ref given = facts::argument_for(site, function, object.text());
    return given && diagnose::stands_for_object(given) && holds(site.ref(), given) &&
           !facts::only_without_distribution(program, site.ref()) &&
           facts::is_reachable(program, site.ref());
  });
}

}  // namespace bench::pitfalls
