// Which two places of a program no run comes by both of: branches of one if, tests of one option
// for different words.
#include "scenarios/pitfalls/facts.hpp"

namespace bench::pitfalls::facts {

using diagnose::Kind;
using diagnose::NodeId;

namespace {

// option == "fp16" above one and option == "powersgd" above the other.
bool options_differ(const Program& program, Ref a, Ref b) {
  const auto compared = [](const diagnose::Guard& guard) {
    const auto& tree = guard.condition.module->tree();
    const bool equals = guard.holds && guard.condition.kind() == Kind::comparison &&
                        tree[guard.condition.node].op == diagnose::Op::equal &&
                        tree.child_count(guard.condition.node) == 2;
    return equals ? guard.condition.with(tree.child_at(guard.condition.node, 1)) : Ref{};
  };
  for (const diagnose::Guard& mine : program.guards(a))
    for (const diagnose::Guard& other : program.guards(b)) {
      const Ref left = compared(mine);
      const Ref right = compared(other);
      if (!left || !right || left.kind() != Kind::string || right.kind() != Kind::string) continue;
      const auto& tree = a.module->tree();
      if (tree.text(tree.child_at(mine.condition.node, 0)) ==
              tree.text(tree.child_at(other.condition.node, 0)) &&
          left.text() != right.text())
        return true;
    }
  return false;
}

}  // namespace

bool exclusive(const Program& program, Ref a, Ref b) {
  return exclusive(a, b) || (a.module == b.module && options_differ(program, a, b));
}

bool exclusive(Ref a, Ref b) {
  if (a.module != b.module) return false;
  const auto& tree = a.module->tree();
  for (NodeId at = a.node; at != diagnose::kNoNode; at = tree[at].parent) {
    const NodeId parent = tree[at].parent;
    if (parent == diagnose::kNoNode) return false;
    const Kind kind = tree[parent].kind;
    if (kind != Kind::if_statement && kind != Kind::try_statement && kind != Kind::conditional)
      continue;
    if (tree.contains(parent, b.node)) return !tree.contains(at, b.node);
  }
  return false;
}

}  // namespace bench::pitfalls::facts
