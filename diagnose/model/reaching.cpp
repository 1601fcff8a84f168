#include "diagnose/model/reaching.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

// The block that holds the definition returns or raises before control comes to the use.
bool leaves_before(const Module& module, NodeId target, NodeId use) {
  const SyntaxTree& tree = module.tree();
  for (NodeId at = tree[target].parent; at != kNoNode && !tree.contains(at, use);
       at = tree[at].parent) {
    if (tree[at].kind == Kind::function) return false;
    if (tree[at].kind != Kind::block) continue;
    NodeId last = kNoNode;
    for (NodeId each = tree[at].first_child; each != kNoNode; each = tree[each].next_sibling)
      last = each;
    if (last != kNoNode &&
        (tree[last].kind == Kind::return_statement || tree[last].kind == Kind::raise_statement))
      return true;
  }
  return false;
}

}  // namespace

bool reaches(const Module& module, const Def& def, NodeId use) {
  if (def.kind == DefKind::parameter) return true;
  if (def.target >= use || leaves_before(module, def.target, use)) return false;
  if (def.kind == DefKind::import || def.kind == DefKind::class_definition) return true;
  // x = f(x): the use on the right sees the earlier value.
  const NodeId parent = module[def.target].parent;
  const NodeId statement =
      parent != kNoNode && module[parent].kind == Kind::tuple ? module[parent].parent : parent;
  return statement == kNoNode || def.kind == DefKind::loop || def.kind == DefKind::context ||
         !module.tree().contains(statement, use);
}

bool every_branch_assigns(const Module& module, const std::vector<NodeId>& targets, NodeId use) {
  const SyntaxTree& tree = module.tree();
  NodeId branch = targets.back();
  while (branch != kNoNode && tree[branch].kind != Kind::block) branch = tree[branch].parent;
  if (branch == kNoNode || tree.contains(branch, use)) return false;
  NodeId outer = tree[branch].parent;
  if (outer != kNoNode && tree[outer].kind != Kind::if_statement) outer = tree[outer].parent;
  if (outer == kNoNode || tree[outer].kind != Kind::if_statement || tree.contains(outer, use) ||
      !tree.contains(tree[outer].parent, use))
    return false;
  bool otherwise = false;
  for (NodeId at = tree[outer].first_child; at != kNoNode; at = tree[at].next_sibling) {
    const Kind kind = tree[at].kind;
    if (kind != Kind::block && kind != Kind::elif_clause && kind != Kind::else_clause) continue;
    otherwise = otherwise || kind == Kind::else_clause;
    const bool assigns = std::any_of(targets.begin(), targets.end(), [&](NodeId target) {
      NodeId block = target;
      while (block != kNoNode && tree[block].kind != Kind::block) block = tree[block].parent;
      return block == at || (block != kNoNode && tree[block].parent == at);
    });
    if (!assigns) return false;
  }
  return otherwise;
}

bool dominates(const Module& module, const Def& def, NodeId use) {
  if (def.kind == DefKind::parameter) return true;
  NodeId block = module[def.target].parent;
  while (block != kNoNode && module[block].kind != Kind::block &&
         module[block].kind != Kind::module)
    block = module[block].parent;
  if (def.kind == DefKind::loop) return module.tree().contains(module[def.value].parent, use);
  return block == kNoNode || module.tree().contains(block, use);
}

}  // namespace bench::diagnose
