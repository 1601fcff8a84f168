#include "scenarios/pitfalls/order.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Guard;

bool only_runs_before(const Program& program, Ref first, Ref second) {
  return program.runs_before(first, second) && !program.runs_before(second, first);
}

bool runs_wherever(const Program& program, Ref node, Ref other) {
  const auto around_node = program.guards(node);
  const auto around_other = program.guards(other);
  return std::all_of(around_node.begin(), around_node.end(), [&](const Guard& guard) {
    return std::any_of(around_other.begin(), around_other.end(), [&](const Guard& each) {
      return each.condition.text() == guard.condition.text() && each.holds == guard.holds;
    });
  });
}

}  // namespace bench::pitfalls
