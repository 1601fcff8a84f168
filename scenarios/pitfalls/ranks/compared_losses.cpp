#include "scenarios/pitfalls/ranks/compared_losses.hpp"

#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;
using diagnose::NodeId;

namespace {

// loss == 0 of bool(loss == 0), and of what is no such call the whole.
Ref without_bool(const Program& program, Ref condition) {
  const CallRef call = program.as_call(condition);
  const bool is_bool = call && call.call->name == "bool" && !call.receiver();
  return is_bool && call.positional(0) ? call.positional(0) : condition;
}

// loss of loss.item() and float(loss).
Ref number_of(const Program& program, Ref value) {
  const CallRef call = program.as_call(value);
  if (!call) return value;
  if (call.call->name == "item" && call.receiver()) return call.receiver();
  return call.call->name == "float" && call.positional(0) ? call.positional(0) : value;
}

}  // namespace

bool compares_loss(const Program& program, Ref condition) {
  condition = without_bool(program, condition);
  const auto& tree = condition.module->tree();
  if (condition.kind() != Kind::comparison || tree.child_count(condition.node) != 2 ||
      tree[condition.node].op == diagnose::Op::is ||
      tree[condition.node].op == diagnose::Op::is_not)
    return false;
  const Ref left = number_of(program, condition.with(tree.child_at(condition.node, 0)));
  const Ref right = number_of(program, condition.with(tree.child_at(condition.node, 1)));
  const bool bound = right.text() == left.text() || program.evaluate(right).is_integer() ||
                     right.kind() == Kind::floating;
  if (left.kind() != Kind::identifier || !bound ||
      !facts::contains(facts::lowered(left.text()), "loss") ||
      facts::forwards_behind(program, left).empty())
    return false;
  // loss = world_mean(loss)
  const auto behind = facts::calls_behind(program, left);
  return std::none_of(behind.begin(), behind.end(), [&](Ref node) {
    const CallRef call = program.as_call(node);
    return says_any(call.call->name, {"world", "sync", "dist", "global", "across", "agree"}) ||
           (says_any(call.call->name, {"mean", "average"}) && !call.receiver());
  });
}

namespace {

// loss, loss.item() and loss.item() * x.size(0) of the wrapped model's loss.
bool comes_from_forward(const Program& program, Ref value) {
  const auto& tree = value.module->tree();
  for (NodeId at = value.node; at < tree[value.node].last; ++at)
    if (tree[at].kind == Kind::identifier && tree[at].field != Field::attribute &&
        !facts::forwards_behind(program, value.with(at)).empty())
      return true;
  return false;
}

}  // namespace

bool compares_sum_of_losses(const Program& program, Ref condition, Ref round) {
  const auto& tree = condition.module->tree();
  if (condition.kind() != Kind::comparison || tree.child_count(condition.node) != 2) return false;
  const Ref left = condition.with(tree.child_at(condition.node, 0));
  const Ref right = condition.with(tree.child_at(condition.node, 1));
  if (right.kind() != Kind::floating && !program.evaluate(right).is_integer()) return false;
  const auto names = variables_in(left);
  const auto added = additions_in(round);
  return std::any_of(added.begin(), added.end(), [&](const Assigned& each) {
    return names.contains(each.name) && each.value && facts::contains(each.value.text(), "loss") &&
           comes_from_forward(program, each.value);
  });
}

}  // namespace bench::pitfalls
