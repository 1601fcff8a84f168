#include "scenarios/pitfalls/steps/stand_in_loss.hpp"

#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/reach/order.hpp"

#include <algorithm>
#include <vector>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;
using diagnose::TrainingLoop;

namespace {

// torch.tensor(0.0, device=device, requires_grad=True): it has no graph behind it.
bool is_leaf(const Program& program, Ref value) {
  const CallRef call = program.as_call(value);
  if (!call || !program.is_literal_true(call.keyword("requires_grad"))) return false;
  const std::string_view path = call.call->path;
  const Ref first = call.positional(0);
  return (path == "torch.tensor" || path == "torch.zeros" || path == "torch.ones") && first &&
         facts::calls_in(first).empty();
}

// The name is given a value in the part of the statement above its handlers.
bool is_set_in_attempt(NodeId attempt, NodeId handler, Ref name) {
  const auto& tree = name.module->tree();
  const auto& assignments = name.module->nodes_of(Kind::assignment);
  return std::any_of(assignments.begin(), assignments.end(), [&](NodeId node) {
    return node > attempt && node < handler &&
           tree.text(tree.child(node, Field::left)) == name.text();
  });
}

bool is_on(const CallRef& backward, Ref name) {
  return backward.module == name.module && backward.receiver() &&
         backward.receiver().text() == name.text();
}

// loss.backward() in the handler, where the attempt has one too, or below it all for both.
bool is_stepped_on(const Program& program, const TrainingLoop& loop, NodeId attempt, NodeId handler,
                   Ref name) {
  const auto& tree = name.module->tree();
  bool in_attempt = false;
  bool in_handler = false;
  bool below = false;
  for (const CallRef& backward : loop.backwards) {
    if (!is_on(backward, name)) continue;
    const NodeId node = backward.call->node;
    in_attempt = in_attempt || (node > attempt && node < handler);
    in_handler = in_handler || (tree.contains(handler, node) && node > name.node);
    below =
        below || (node >= tree[attempt].last && runs_in(program, loop.batches, backward.ref()) &&
                  is_set_in_attempt(attempt, handler, name));
  }
  return (in_attempt && in_handler) || (below && !in_attempt);
}

// raise, all_reduce(failed): not kept to itself.
bool is_told_to_others(std::string_view handler) {
  return holds_any(handler, {"raise", "reduce", "gather", "broadcast", "barrier", "abort", "exit",
                             "continue", "break", "return"});
}

// except Exception: loss = torch.zeros(1, requires_grad=True); loss.backward()
std::vector<Ref> stand_in_losses(const Program& program, const TrainingLoop& loop) {
  std::vector<Ref> out;
  const diagnose::Module& module = *loop.batches.module;
  const auto& tree = module.tree();
  for (const NodeId node : module.nodes_of(Kind::assignment)) {
    const Ref assignment{&module, node};
    if (!is_leaf(program, assignment.child(Field::right)) ||
        !runs_in(program, loop.batches, assignment))
      continue;
    const Ref name = assignment.child(Field::left);
    const NodeId handler = tree.ancestor(node, Kind::except_clause);
    const NodeId attempt =
        handler == kNoNode ? kNoNode : tree.ancestor(handler, Kind::try_statement);
    if (attempt != kNoNode && runs_in(program, loop.batches, assignment.with(attempt)) &&
        name.kind() == Kind::identifier && !is_told_to_others(tree.text(handler)) &&
        is_stepped_on(program, loop, attempt, handler, name))
      out.push_back(assignment);
  }
  return out;
}

}  // namespace

void check_stand_in_losses(const Program& program, Report& report) {
  for (const TrainingLoop& loop : program.training_loops())
    for (const Ref loss : stand_in_losses(program, loop))
      report
          .at(loss, Confidence::likely,
              "a loss without a graph stands in after an error that only this rank may meet: its "
              "backward() reduces nothing, and the other ranks wait")
          .help = "Let the error end the run, or agree on it with an all_reduce before the step.";
}

}  // namespace bench::pitfalls
