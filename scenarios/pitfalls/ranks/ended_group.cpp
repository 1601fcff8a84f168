#include "scenarios/pitfalls/ranks/ended_group.hpp"

#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/reach/order.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::FunctionRef;
using diagnose::Guard;
using diagnose::RankTest;

namespace {

// return not dist.is_initialized() or dist.get_rank() == 0; if not is_initialized(): return 0.
bool is_first_without_group(FunctionRef function) {
  const std::string_view text = function.module->text(function.function->body);
  return facts::contains(text, "initialized()") &&
         holds_any(text, {"initialized() or ", "return 0", "return True", "else 0", "else True"});
}

// The test of the rank asks such a function, or one that asks it.
bool asks_function_of_group(const Program& program, Ref condition) {
  const auto calls = facts::calls_in(condition);
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    const FunctionRef asked = program.callee(call);
    if (!asked) return false;
    if (is_first_without_group(asked)) return true;
    const auto inner = facts::calls_in({asked.module, asked.function->body});
    return std::any_of(inner.begin(), inner.end(), [&](const CallRef& each) {
      const FunctionRef next = program.callee(each);
      return next && is_first_without_group(next);
    });
  });
}

// Wherever the ranks come by the condition, they have come by the node, perhaps in a function.
bool is_come_by(const Program& program, Ref node, Ref condition) {
  const FunctionRef here = program.enclosing_function(condition);
  const auto around = program.guards(condition);
  for (const Ref place : diagnose::places_of(program, node)) {
    for (const Guard& guard : program.guards(place))
      if (!program.is_distributed_flag(guard.condition) &&
          std::find(around.begin(), around.end(), guard) == around.end())
        return false;
    if (program.enclosing_function(place) == here) return place.module == condition.module;
  }
  return false;
}

bool is_behind_end(const Program& program, Ref condition) {
  const auto ends = program.calls_named("destroy_process_group");
  const auto begins = program.calls(Api::init_process_group);
  return std::any_of(ends.begin(), ends.end(), [&](const CallRef& end) {
    return only_runs_before(program, end.ref(), condition) &&
           is_come_by(program, end.ref(), condition) &&
           std::none_of(begins.begin(), begins.end(), [&](const CallRef& begin) {
             return program.runs_before(end.ref(), begin.ref());
           });
  });
}

}  // namespace

bool asks_ended_group(const Program& program, Ref node) {
  const auto guards = program.guards(node);
  return std::any_of(guards.begin(), guards.end(), [&](const Guard& guard) {
    return program.rank_test(guard.condition) ==
               (guard.holds ? RankTest::main_only : RankTest::not_main) &&
           asks_function_of_group(program, guard.condition) &&
           is_behind_end(program, guard.condition);
  });
}

}  // namespace bench::pitfalls
