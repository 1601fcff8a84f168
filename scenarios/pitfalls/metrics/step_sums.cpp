#include "scenarios/pitfalls/metrics/step_sums.hpp"

#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;

namespace {

// total = step(total, x), also as one of several results: a number comes back by name only.
bool comes_back_as(const CallRef& call, Ref argument) {
  const NodeId parent = call.module->tree()[call.call->node].parent;
  if (parent == kNoNode) return false;
  const Ref assignment = call.ref().with(parent);
  const Ref left = assignment.kind() == Kind::assignment ? assignment.child(Field::left) : Ref{};
  return left && variables_in(left).contains(std::string(argument.text()));
}

// The addition changes the object itself: losses.append(x), sums["loss"] += x.
bool changes_object(Ref body, const Assigned& addition) {
  return body.with(addition.target).kind() != Kind::identifier;
}

}  // namespace

std::vector<Assigned> additions_by_steps(const Program& program, Ref loop,
                                         std::vector<Assigned>& in_loop) {
  std::vector<Assigned> out;
  for (const CallRef& call : facts::calls_in(loop.child(Field::body))) {
    const FunctionRef step = program.callee(call);
    if (!step || step.function->name == "__init__" || call.has_splat()) continue;
    const Ref body{step.module, step.function->body};
    const std::size_t before = out.size();
    for (const Assigned& addition : additions_in(body)) {
      const std::string whole = addition.name.substr(0, addition.name.find('['));
      const Ref argument = facts::argument_for(call, step, whole);
      const bool is_variable =
          argument.kind() == Kind::identifier || argument.text().starts_with("self.");
      if (is_variable && (changes_object(body, addition) || comes_back_as(call, argument)))
        out.push_back({std::string(argument.text()) + addition.name.substr(whole.size()),
                       call.call->node, addition.value});
    }
    if (out.size() == before) continue;
    const auto assigned = assignments_in(body);
    in_loop.insert(in_loop.end(), assigned.begin(), assigned.end());
  }
  return out;
}

VariableNames metrics_added_in(const Program& program, Ref loop) {
  std::vector<Assigned> in_loop = assignments_in(loop);
  std::vector<Assigned> additions = additions_in(loop);
  const auto by_steps = additions_by_steps(program, loop, in_loop);
  additions.insert(additions.end(), by_steps.begin(), by_steps.end());
  VariableNames out;
  for (const Assigned& each : additions)
    if (is_metric(each, in_loop)) out.insert(each.name);
  return out;
}

}  // namespace bench::pitfalls
