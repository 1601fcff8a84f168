#include "scenarios/pitfalls/unsummed_mean.hpp"

#include "scenarios/pitfalls/facts.hpp"

#include <algorithm>
#include <vector>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;

namespace {

// Something calls backward() on the name: a share of a gradient is no mean.
bool is_differentiated(const Program& program, std::string_view name) {
  const auto backwards = program.calls_named("backward");
  return std::any_of(backwards.begin(), backwards.end(), [&](const CallRef& backward) {
    return facts::loss_of(backward).text() == name;
  });
}

// total / world_size, where the program shows that the divisor is the number of ranks.
bool divides_by_ranks(const Program& program, Ref value) {
  return value.kind() == Kind::binary &&
         value.module->tree()[value.node].op == diagnose::Op::divide &&
         program.is_world_size(value.child(Field::right));
}

}  // namespace

UnsummedMean unsummed_mean(const Program& program, Ref loop) {
  const std::vector<Assigned> in_loop = assignments_in(loop);
  VariableNames sums;
  for (const Assigned& each : additions_in(loop))
    if (is_metric(each, in_loop)) sums.insert(each.name);
  if (sums.empty()) return {};
  const std::vector<Assigned> assigned = assignments_in(body_around(program, loop));
  for (const Assigned& each : assigned) {
    if (!divides_by_ranks(program, each.value)) continue;
    const Ref divided = each.value.child(Field::left);
    const VariableNames names = behind(variables_in(divided), assigned);
    const auto metric = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
      return sums.contains(name) && !is_differentiated(program, name);
    });
    if (metric != names.end() && !is_differentiated(program, each.name))
      return {each.value, *metric};
  }
  return {};
}

}  // namespace bench::pitfalls
