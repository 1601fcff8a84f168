#include "scenarios/pitfalls/steps/reduced_gradients.hpp"

#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::pitfalls {

namespace {

bool tells_of_reduction(std::string_view name) {
  return says_any(name, {"allreduce", "all_reduce", "reduce", "average", "sync"});
}

// all_reduce(grads), where grads is a list of p.grad, or flat what such a list was made into.
bool is_given_gradients(const Program& program, const CallRef& call) {
  const Ref arguments = call.ref().child(diagnose::Field::arguments);
  if (!arguments) return false;
  if (facts::contains(arguments.text(), ".grad")) return true;
  const std::vector<Assigned> assigned = assignments_in(body_around(program, call.ref()));
  const VariableNames names = behind(variables_in(arguments), assigned);
  return std::any_of(assigned.begin(), assigned.end(), [&](const Assigned& each) {
    return names.contains(each.name) && facts::contains(each.value.text(), ".grad");
  });
}

// A program that calls Horovod's own functions and never names a .grad reduces metrics.
bool calls_allreduce(const Program& program) {
  if (!program.mentions(".grad")) return false;
  for (const std::string_view name :
       {"allreduce", "allreduce_", "allreduce_async", "allreduce_async_", "grouped_allreduce",
        "grouped_allreduce_", "grouped_allreduce_async_"})
    if (!program.calls_named(name).empty()) return true;
  return false;
}

}  // namespace

bool reduces_gradients(const Program& program) {
  if (calls_allreduce(program)) return true;
  const auto calls = program.calls_that(tells_of_reduction);
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    return says_any(call.call->name, {"grad"}) || is_given_gradients(program, call);
  });
}

}  // namespace bench::pitfalls
