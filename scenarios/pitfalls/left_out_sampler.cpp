#include "scenarios/pitfalls/left_out_sampler.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::FunctionRef;
using diagnose::Guard;
using diagnose::Kind;
using diagnose::kNoNode;

namespace {

constexpr int kCallers = 4;

// The parameter of the function that decides whether it makes the sampler: its index, or nothing.
std::optional<std::size_t> deciding_parameter(const Program& program, FunctionRef maker,
                                              const CallRef& sampler) {
  const auto& parameters = maker.function->parameters;
  for (const Guard& guard : program.guards(sampler.ref())) {
    if (!guard.holds || guard.condition.kind() != Kind::identifier) continue;
    for (std::size_t i = 0; i < parameters.size(); ++i)
      if (parameters[i].splat == 0 && parameters[i].name == guard.condition.text()) return i;
  }
  return std::nullopt;
}

// get_loaders(32, distributed=False), or no word about it where that is the default.
bool says_no(const Program& program, FunctionRef maker, std::size_t parameter,
             const CallRef& site) {
  const auto& decides = maker.function->parameters[parameter];
  if (site.has_splat()) return false;
  if (const Ref given = site.argument(parameter, decides.name))
    return given.kind() == Kind::false_literal;
  return decides.default_value != kNoNode &&
         program.is_literal_false({maker.module, decides.default_value});
}

// What makes the loaders for the loop is the nearest function around it, or above that, which calls
// the maker: every such function says no.
bool every_way_says_no(const Program& program, FunctionRef maker, std::size_t parameter,
                       FunctionRef user, int depth) {
  bool makes = false;
  for (const CallRef& site : program.call_sites(maker)) {
    if (program.enclosing_function(site.ref()) != user) continue;
    if (!says_no(program, maker, parameter, site)) return false;
    makes = true;
  }
  if (makes) return true;
  if (!user || depth > kCallers || program.is_spawned(user)) return false;
  const auto& callers = program.call_sites(user);
  return !callers.empty() &&
         std::all_of(callers.begin(), callers.end(), [&](const CallRef& caller) {
           return every_way_says_no(program, maker, parameter,
                                    program.enclosing_function(caller.ref()), depth + 1);
         });
}

}  // namespace

bool is_sampler_left_out(const Program& program, Ref loop, const CallRef& sampler) {
  const FunctionRef maker = program.enclosing_function(sampler.ref());
  if (!maker || maker.function->owner_class != kNoNode) return false;
  const auto parameter = deciding_parameter(program, maker, sampler);
  return parameter &&
         every_way_says_no(program, maker, *parameter, program.enclosing_function(loop), 0);
}

}  // namespace bench::pitfalls
