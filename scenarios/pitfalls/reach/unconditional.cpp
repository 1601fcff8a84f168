#include "scenarios/pitfalls/reach/unconditional.hpp"

#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;

bool ends_the_run(const diagnose::Guard& guard, Ref node) {
  const auto& tree = guard.condition.module->tree();
  const NodeId choice = tree[guard.condition.node].parent;
  const NodeId branch = tree.child(choice, Field::consequence);
  if (guard.holds || branch == kNoNode ||
      (node.module == guard.condition.module && tree.contains(choice, node.node)))
    return false;
  NodeId last = kNoNode;
  for (NodeId at = tree[branch].first_child; at != kNoNode; at = tree[at].next_sibling) last = at;
  return last != kNoNode && (tree[last].kind == Kind::raise_statement ||
                             facts::ends_process(guard.condition.with(last)));
}

bool is_unconditional(const Program& program, Ref node) {
  const auto guards = program.guards(node);
  return std::all_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
    return ends_the_run(guard, node) &&
           program.rank_test(guard.condition) == diagnose::RankTest::none;
  });
}

}  // namespace bench::pitfalls
