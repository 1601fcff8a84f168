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

// del name; del name, other
bool names(const SyntaxTree& tree, NodeId deletion, std::string_view name) {
  for (NodeId at = tree[deletion].first_child; at != kNoNode; at = tree[at].next_sibling) {
    if (tree[at].kind == Kind::identifier && tree.text(at) == name) return true;
    if (tree[at].kind == Kind::tuple && names(tree, at, name)) return true;
  }
  return false;
}

// del name, on each way from the definition to the use: what was there is gone.
bool is_deleted_before(const Module& module, const Def& def, NodeId use) {
  // Few files delete anything, and the walk is asked for each definition and each use.
  if (!module.mentions(" del ") && !module.mentions("\tdel ") && !module.mentions("\ndel "))
    return false;
  const SyntaxTree& tree = module.tree();
  for (NodeId block = tree[use].parent; block != kNoNode; block = tree[block].parent) {
    const Kind kind = tree[block].kind;
    if (kind == Kind::function) return false;
    if (kind != Kind::block && kind != Kind::module) continue;
    for (NodeId at = tree[block].first_child; at != kNoNode && at < use; at = tree[at].next_sibling)
      if (at > def.target && tree[at].kind == Kind::delete_statement && names(tree, at, def.name))
        return true;
  }
  return false;
}

bool leaves(Kind kind) {
  return kind == Kind::return_statement || kind == Kind::raise_statement ||
         kind == Kind::continue_statement || kind == Kind::break_statement;
}

bool always_assigns(const SyntaxTree& tree, NodeId statement, const std::vector<NodeId>& targets);

// One of the block's statements does.
bool block_assigns(const SyntaxTree& tree, NodeId block, const std::vector<NodeId>& targets) {
  for (NodeId at = tree[block].first_child; at != kNoNode; at = tree[at].next_sibling)
    if (always_assigns(tree, at, targets)) return true;
  return false;
}

// The clause's block does: of else:, elif, except and finally.
bool clause_assigns(const SyntaxTree& tree, NodeId clause, const std::vector<NodeId>& targets) {
  if (tree[clause].kind == Kind::block) return block_assigns(tree, clause, targets);
  for (NodeId at = tree[clause].first_child; at != kNoNode; at = tree[at].next_sibling)
    if (tree[at].kind == Kind::block) return block_assigns(tree, at, targets);
  return false;
}

// All branches do, and one of them is taken: an if with its else, a try with its handlers.
bool branches_assign(const SyntaxTree& tree, NodeId statement, const std::vector<NodeId>& targets) {
  bool complete = tree[statement].kind == Kind::try_statement;
  for (NodeId at = tree[statement].first_child; at != kNoNode; at = tree[at].next_sibling) {
    const Kind kind = tree[at].kind;
    if (kind == Kind::finally_clause) {
      if (clause_assigns(tree, at, targets)) return true;
      continue;
    }
    const bool is_else = kind == Kind::else_clause;
    if (kind != Kind::block && kind != Kind::elif_clause && kind != Kind::except_clause && !is_else)
      continue;
    if (is_else && tree[statement].kind == Kind::try_statement) continue;
    complete = complete || is_else;
    if (!clause_assigns(tree, at, targets)) return false;
  }
  return complete;
}

// Where control comes out of the statement at its end, one of the targets has been given a value.
bool always_assigns(const SyntaxTree& tree, NodeId statement, const std::vector<NodeId>& targets) {
  const Kind kind = tree[statement].kind;
  if (leaves(kind)) return true;
  if (std::none_of(targets.begin(), targets.end(),
                   [&](NodeId target) { return tree.contains(statement, target); }))
    return false;
  switch (kind) {
    case Kind::if_statement:
    case Kind::try_statement:
      return branches_assign(tree, statement, targets);
    case Kind::with_statement:
      return clause_assigns(tree, statement, targets);
    case Kind::expression_statement:
    case Kind::assignment:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool reaches(const Module& module, const Def& def, NodeId use) {
  if (def.kind == DefKind::parameter) return true;
  if (def.target >= use || leaves_before(module, def.target, use)) return false;
  if (!def.is_attribute && is_deleted_before(module, def, use)) return false;
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
  NodeId statement = targets.back();
  for (NodeId above = tree[statement].parent; above != kNoNode && !tree.contains(above, use);
       above = tree[above].parent)
    statement = above;
  return !tree.contains(statement, use) && always_assigns(tree, statement, targets);
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
