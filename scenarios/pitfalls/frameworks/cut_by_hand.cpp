#include "scenarios/pitfalls/frameworks/cut_by_hand.hpp"

#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <cstdint>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;
using diagnose::Op;

namespace {

// loader for i of `for i, batch in enumerate(loader)`, which counts from 0; empty for other names.
Ref numbered_by(const Program& program, Ref name) {
  const auto loops = program.loops_around(name);
  for (const Ref& loop : loops) {
    if (loop.module != name.module || loop.kind() != Kind::for_statement) continue;
    const CallRef counter = program.as_call(loop.child(Field::right));
    const Ref targets = loop.child(Field::left);
    if (!counter || counter.call->name != "enumerate" || counter.argument(1, "start") ||
        targets.module->tree()[targets.node].first_child == kNoNode ||
        targets.with(targets.module->tree()[targets.node].first_child).text() != name.text())
      continue;
    const auto& defs = name.module->defs_of(name.text(), false);  // i += 1 in the round
    const bool is_set_again = std::any_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
      const NodeId target = name.module->defs()[index].target;
      return name.module->tree().contains(loop.child(Field::body).node, target);
    });
    return is_set_again ? Ref{} : program.strip_iterable(counter.positional(0));
  }
  return {};
}

// i == len(loader) and i >= len(loader) where i numbers the batches of the loader from 0.
bool is_past_last_round(const Program& program, Ref condition) {
  const auto& tree = condition.module->tree();
  const Op op = tree[condition.node].op;
  if (condition.kind() != Kind::comparison || tree.child_count(condition.node) != 2 ||
      (op != Op::equal && op != Op::greater_equal && op != Op::greater))
    return false;
  const Ref number = condition.with(tree.child_at(condition.node, 0));
  const CallRef length = program.as_call(condition.with(tree.child_at(condition.node, 1)));
  if (number.kind() != Kind::identifier || !length || length.call->name != "len") return false;
  const Ref batches = numbered_by(program, number);
  return batches && batches.text() == length.positional(0).text();
}

bool never_holds(const Program& program, Ref condition) {
  if (condition.kind() == Kind::boolean &&
      (*condition.module)[condition.node].op == Op::logical_and)
    return never_holds(program, condition.child(Field::left)) ||
           never_holds(program, condition.child(Field::right));
  return is_past_last_round(program, condition);
}

bool is_never_reached(const Program& program, Ref node) {
  const auto guards = program.guards(node);
  return std::any_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
    return guard.holds && never_holds(program, guard.condition);
  });
}

}  // namespace

bool cuts_repeated_samples(const Program& program, const CallRef& gather) {
  const diagnose::Module& module = *gather.module;
  const NodeId function = module.function_of(gather.call->node);
  const std::string_view around = module.text(function);
  if (!facts::contains(around, ".dataset)") || !facts::contains(around, "[:")) return false;
  bool any = false;
  for (const NodeId node : module.nodes_of(Kind::subscript)) {
    const Ref cut{&module, node};
    const Ref part = cut.child(Field::subscript);
    if (!module.tree().contains(function, node) || !part || part.kind() != Kind::slice ||
        !facts::contains(part.text(), ".dataset)"))
      continue;
    if (!is_never_reached(program, cut)) return true;
    any = true;
  }
  return !any;
}

}  // namespace bench::pitfalls
