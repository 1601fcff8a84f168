#include "scenarios/pitfalls/metrics/running_sums.hpp"

#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::Module;
using diagnose::NodeId;
using diagnose::Op;

namespace {

template <typename Names>
bool is_one_of(std::string_view name, const Names& names) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// torch.cat([a, b]), np.append(a, b).
bool is_joined(const CallRef& call) {
  constexpr std::string_view kJoins[] = {"cat",    "concat", "concatenate",
                                         "vstack", "hstack", "append"};
  return is_one_of(call.call->name, kJoins);
}

// running_average(loss, mean, i): a helper that makes the new mean from the old one.
bool makes_running_mean(const CallRef& call) {
  return says_any(call.call->name, {"average", "avg", "mean", "accumulate"}) &&
         !says_any(call.call->name, {"ema", "exp", "moving", "smooth"}) && call.positional(1);
}

void push_children(Ref of, std::vector<Ref>& out) {
  const auto& tree = of.module->tree();
  for (NodeId at = tree[of.node].first_child; at != kNoNode; at = tree[at].next_sibling)
    if (tree[at].kind != Kind::keyword_argument) out.push_back(of.with(at));
}

// 0.9 * ema + 0.1 * loss: a smoothed figure for the eye adds nothing up.
bool is_smoothed(Ref product, std::string_view name) {
  const auto& tree = product.module->tree();
  const Ref left = product.with(tree.child_at(product.node, 0));
  const Ref right = product.with(tree.child_at(product.node, 1));
  if (!left || !right || (left.text() == name) == (right.text() == name)) return false;
  const Ref weight = left.text() == name ? right : left;
  return weight.kind() == Kind::floating ||
         says_any(weight.text(), {"alpha", "beta", "decay", "momentum", "smooth"});
}

// The name is a part of the value, beside something that is added or joined to it.
bool grows(const Program& program, Ref value, std::string_view name) {
  bool grown = false;
  bool itself = false;
  std::vector<Ref> pending{value};
  while (!pending.empty()) {
    const Ref at = pending.back();
    pending.pop_back();
    const CallRef call = program.as_call(at);
    if (at.kind() == Kind::binary) {
      const Op op = at.module->tree()[at.node].op;
      if (op == Op::multiply && is_smoothed(at, name)) return false;
      grown = grown || op == Op::add;
      if (op == Op::add || op == Op::subtract || op == Op::multiply || op == Op::divide)
        push_children(at, pending);
    } else if (call && (is_joined(call) || makes_running_mean(call))) {
      grown = true;
      push_children(at.child(Field::arguments), pending);
    } else if (at.kind() == Kind::list || at.kind() == Kind::tuple) {
      push_children(at, pending);
    } else {
      itself = itself || at.text() == name;
    }
  }
  return grown && itself;
}

// {}, dict(), torch.zeros(n): holds nothing yet.
bool is_empty_container(const Program& program, Ref value) {
  constexpr std::string_view kMakers[] = {"dict",       "OrderedDict", "zeros", "empty",
                                          "zeros_like", "full",        "ones"};
  if (value.kind() == Kind::dictionary)
    return value.module->tree()[value.node].first_child == kNoNode;
  const CallRef made = program.as_call(value);
  return made && is_one_of(made.call->name, kMakers);
}

// What the loop's function gives the name above the loop; empty where the loop sets it above `end`,
// other than in the first round: `if total is None: total = out; else: total = cat(total, out)`.
Ref set_above(Ref loop, NodeId end, std::string_view name) {
  const Module& module = *loop.module;
  Ref above;
  for (const std::uint32_t index : module.defs_of(name, false)) {
    const diagnose::Def& def = module.defs()[index];
    if (def.target >= end || def.value == kNoNode ||
        module.function_of(def.target) != module.function_of(loop.node))
      continue;
    if (module.tree().contains(loop.node, def.target)) {
      if (facts::exclusive(loop.with(def.target), loop.with(end))) continue;
      return {};
    }
    if (def.kind == diagnose::DefKind::assign) above = loop.with(def.value);
  }
  return above;
}

}  // namespace

std::vector<Assigned> self_sums_in(const Program& program, Ref loop) {
  std::vector<Assigned> out;
  const Module& module = *loop.module;
  for (const NodeId node : module.nodes_of(Kind::assignment)) {
    if (!module.tree().contains(loop.node, node)) continue;
    const Ref left = loop.with(node).child(Field::left);
    const Ref right = loop.with(node).child(Field::right);
    const VariableNames names = left ? variables_in(left) : VariableNames{};
    if (!right || names.size() != 1 || left.kind() == Kind::tuple ||
        !grows(program, right, left.text()))
      continue;
    const Ref whole = left.kind() == Kind::subscript ? left.child(Field::value) : left;
    if (whole.text().starts_with("self.") || set_above(loop, node, whole.text()))
      out.push_back({*names.begin(), node, right});
  }
  return out;
}

std::vector<Assigned> stored_items_in(const Program& program, Ref loop) {
  std::vector<Assigned> out;
  const Module& module = *loop.module;
  for (const NodeId node : module.nodes_of(Kind::assignment)) {
    const Ref left = loop.with(node).child(Field::left);
    const Ref right = loop.with(node).child(Field::right);
    if (!module.tree().contains(loop.node, node) || left.kind() != Kind::subscript || !right)
      continue;
    const Ref container = left.child(Field::value);
    const Ref made =
        container.kind() == Kind::identifier ? set_above(loop, node, container.text()) : Ref{};
    if (made && is_empty_container(program, made))
      out.push_back({std::string(container.text()), node, right});
  }
  return out;
}

namespace {

bool writes_something(Ref body) {
  const auto calls = facts::calls_in(body);
  return std::any_of(calls.begin(), calls.end(), [](const CallRef& call) {
    return says_any(call.call->name, {"save", "write", "dump", "to_file", "export"});
  });
}

}  // namespace

bool is_written_one_by_one(Ref loop, const std::string& name) {
  const Module& module = *loop.module;
  const auto& tree = module.tree();
  const auto& loops = module.loops();
  bool written = false;
  const NodeId function = module.function_of(loop.node);
  const NodeId end = tree[function].last;
  for (NodeId at = tree[loop.node].last; at < end; ++at) {
    if (tree[at].kind != Kind::identifier || tree.text(at) != name) continue;
    const auto writer = std::find_if(loops.begin(), loops.end(), [&](NodeId node) {
      const Ref over = loop.with(node).child(Field::right);
      return tree[node].kind == Kind::for_statement && over && tree.contains(over.node, at);
    });
    if (writer == loops.end() || !writes_something(loop.with(*writer).child(Field::body)))
      return false;
    written = true;
  }
  return written;
}

}  // namespace bench::pitfalls
