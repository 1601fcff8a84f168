#include "scenarios/pitfalls/ranks/own_lists.hpp"

#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Guard;
using diagnose::Kind;
using diagnose::RankTest;

bool is_under_main_rank(const Program& program, Ref node, Ref round) {
  const auto guards = program.guards(node);
  return std::any_of(guards.begin(), guards.end(), [&](const Guard& guard) {
    return guard.holds && round.module->tree().contains(round.node, guard.condition.node) &&
           program.rank_test(guard.condition) == RankTest::main_only;
  });
}

namespace {

// A call that stands outside of the main rank's branch is given the list: what the ranks tell each
// other may come of it.
bool is_handed_on(const Program& program, const CallRef& call, const std::string& name, Ref round) {
  constexpr std::string_view kPlain[] = {"len",    "max",   "min", "sum",
                                         "sorted", "print", "all", "any"};
  const auto given = facts::arguments_of(call);
  return std::find(std::begin(kPlain), std::end(kPlain), call.call->name) == std::end(kPlain) &&
         std::any_of(given.begin(), given.end(),
                     [&](Ref value) { return facts::contains(value.text(), name); }) &&
         !is_under_main_rank(program, call.ref(), round);
}

// kept.append(score) under the test of the rank, and nothing else in the round changes the list.
bool grows_on_main_rank(const Program& program, const std::string& name, Ref round) {
  const auto assigned = assignments_in(round);
  if (std::any_of(assigned.begin(), assigned.end(), [&](const Assigned& each) {
        return each.name == name && !is_under_main_rank(program, round.with(each.target), round);
      }))
    return false;
  bool grows = false;
  for (const CallRef& call : facts::calls_in(round)) {
    if (is_handed_on(program, call, name, round)) return false;
    if (!call.receiver() || call.receiver().text() != name) continue;
    if ((call.call->name != "append" && call.call->name != "extend") ||
        !is_under_main_rank(program, call.ref(), round))
      return false;
    grows = true;
  }
  return grows;
}

}  // namespace

bool is_made_of_own_list(const Program& program, Ref condition, Ref round) {
  const auto assigned = assignments_in(round);
  const auto is_own = [&](const std::string& name) {
    return grows_on_main_rank(program, name, round);
  };
  const auto names = with_wholes(variables_in(condition));
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    bool made = false;
    for (const Assigned& each : assigned) {
      if (each.name != name) continue;
      const Kind kind = each.value.kind();
      const auto parts = with_wholes(variables_in(each.value));
      if ((kind != Kind::comprehension && kind != Kind::subscript) ||
          std::none_of(parts.begin(), parts.end(), is_own))
        return false;
      made = true;
    }
    const auto calls = facts::calls_in(round);
    return made && std::none_of(calls.begin(), calls.end(), [&](const CallRef& call) {
             return is_handed_on(program, call, name, round);
           });
  });
}

}  // namespace bench::pitfalls
