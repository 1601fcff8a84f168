#include "scenarios/pitfalls/steps/unsynced_steps.hpp"

#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;

namespace {

bool goes_back(const CallRef& call) { return says_any(call.call->name, {"backward"}); }

bool is_collective(const CallRef& call) {
  return call.call->api == Api::all_reduce || says_any(call.call->name, {"reduce", "sync_"});
}

// for p in model.parameters(): dist.all_reduce(p.grad), average_gradients(model), and what a
// function of the program sends round; clip_grad_norm_ and zero_grad only look at gradients.
bool may_sum_gradients(const Program& program, Ref statement) {
  const bool of_gradients = facts::contains(statement.text(), ".grad");
  for (const CallRef& call : facts::calls_in(statement)) {
    const std::string_view name = call.call->name;
    if (of_gradients && is_collective(call)) return true;
    if (says_any(name, {"grad"}) && says_any(name, {"reduce", "average", "sync", "sum", "gather"}))
      return true;
    const auto helper = program.callee(call);
    if (helper && program.subtree_calls({helper.module, helper.function->body}, is_collective) &&
        facts::contains(helper.module->text(helper.function->body), ".grad"))
      return true;
  }
  return false;
}

bool steps_optimizer(const Program& program, const CallRef& call) {
  if (call.call->name != "step" || !call.receiver()) return false;
  if (program.comes_from(call.receiver(), Api::optimizer)) return true;
  const std::string object = facts::lowered(diagnose::last_word(call.receiver()));
  return says_any(object, {"optim", "opt"}) || (says_any(object, {"scaler"}) && call.positional(0));
}

// What stands beside the statement in its block: the first step below it that no other backward
// pass of the block leads to. `goes_on` says that nothing there decides.
CallRef step_beside(const Program& program, Ref statement, bool& goes_on) {
  const auto& tree = statement.module->tree();
  const NodeId block = tree[statement.node].parent;
  bool is_below = false;
  goes_on = false;
  for (NodeId at = tree[block].first_child; at != kNoNode; at = tree[at].next_sibling) {
    if (at == statement.node) {
      is_below = true;
      continue;
    }
    const Ref other = statement.with(at);
    if (program.subtree_calls(other, goes_back)) return {};
    if (!is_below) continue;
    if (may_sum_gradients(program, other)) return {};
    for (const CallRef& call : facts::calls_in(other))
      if (steps_optimizer(program, call)) return call;
  }
  goes_on = true;
  return {};
}

}  // namespace

CallRef step_without_sync(const Program& program, Ref with) {
  const auto& tree = with.module->tree();
  const Ref body = with.child(Field::body);
  if (!body || !program.subtree_calls(body, goes_back)) return {};
  // for part in parts: with model.no_sync(): ...; the step may come behind the loop.
  for (Ref statement = with;;) {
    const NodeId block = tree[statement.node].parent;
    if (tree[block].kind != Kind::block && tree[block].kind != Kind::module) return {};
    bool goes_on = false;
    if (const CallRef step = step_beside(program, statement, goes_on)) return step;
    const NodeId around = tree[block].parent;
    if (!goes_on || around == kNoNode || tree[block].kind == Kind::module ||
        (tree[around].kind != Kind::for_statement && tree[around].kind != Kind::while_statement))
      return {};
    statement = with.with(around);
  }
}

}  // namespace bench::pitfalls
