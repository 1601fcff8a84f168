#include "scenarios/pitfalls/metrics/chosen_rank.hpp"

#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::FunctionRef;
using diagnose::RankTest;

namespace {

bool is_chosen_around(const Program& program, Ref loop) {
  const auto guards = program.guards(loop);
  return std::any_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
    return program.rank_test(guard.condition) != RankTest::none;
  });
}

bool hands_over(const Program& program, const CallRef& site, const CallRef& loader) {
  const auto given = facts::arguments_of(site);
  return std::any_of(given.begin(), given.end(), [&](Ref argument) {
    const auto loaders = loaders_of(program, argument);
    return std::any_of(loaders.begin(), loaders.end(),
                       [&](const CallRef& each) { return each.ref() == loader.ref(); });
  });
}

}  // namespace

Ref place_of_choice(const Program& program, Ref loop, const CallRef& loader) {
  const FunctionRef function = program.enclosing_function(loop);
  if (!function || is_chosen_around(program, loop)) return loop;
  std::vector<CallRef> sites = program.call_sites(function);
  if (sites.size() == 1) return sites.front().ref();
  std::erase_if(sites, [&](const CallRef& site) {
    return program.guarded_by_rank(site.ref()) != RankTest::main_only ||
           !facts::is_reachable(program, site.ref());
  });
  const auto hands = std::find_if(sites.begin(), sites.end(), [&](const CallRef& site) {
    return hands_over(program, site, loader);
  });
  if (hands != sites.end()) return hands->ref();
  return sites.size() == 1 ? sites.front().ref() : loop;
}

}  // namespace bench::pitfalls
