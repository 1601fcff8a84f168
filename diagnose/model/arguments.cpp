#include "diagnose/model/arguments.hpp"

#include "diagnose/model/library_parameters.hpp"

namespace bench::diagnose {
namespace {

constexpr int kMaxDepth = 8;  // dictionaries and partial calls within each other

// make = partial(f, ...) for a call make(...), when the name has that one meaning.
NodeId bound_call(const Module& module, NodeId call) {
  if (!module.imports_partial()) return kNoNode;
  const NodeId function = module.tree().child(call, Field::function);
  if (function == kNoNode || module[function].kind != Kind::identifier) return kNoNode;
  const auto& defs = module.defs_of(module.text(function), false);
  if (defs.size() != 1) return kNoNode;
  const Def& def = module.defs()[defs.front()];
  const bool is_call = def.kind == DefKind::assign && def.element < 0 && def.value != kNoNode &&
                       module[def.value].kind == Kind::call;
  return is_call && is_partial(module, def.value) ? def.value : kNoNode;
}

NodeId first_argument(const Module& module, NodeId call) {
  const NodeId list = module.tree().child(call, Field::arguments);
  return list == kNoNode ? kNoNode : module[list].first_child;
}

// Adds the keywords of one call; false where a splat may give more than can be seen.
bool add_keywords(const Module& module, NodeId call, std::vector<Argument>& out) {
  const SyntaxTree& tree = module.tree();
  bool all_seen = true;
  for (NodeId at = first_argument(module, call); at != kNoNode; at = tree[at].next_sibling) {
    if (tree[at].kind == Kind::keyword_argument)
      out.push_back(
          {std::string(tree.text(tree.child(at, Field::name))), tree.child(at, Field::value), at});
    else if (tree[at].kind == Kind::dictionary_splat)
      all_seen = add_items(module, tree[at].first_child, out, 0) && all_seen;
    else if (tree[at].kind == Kind::list_splat)
      all_seen = false;
  }
  return all_seen;
}

}  // namespace

NodeId own_positional(const Module& module, NodeId call, std::size_t index) {
  const SyntaxTree& tree = module.tree();
  const NodeId list = tree.child(call, Field::arguments);
  if (list == kNoNode) return kNoNode;
  if (tree[list].kind != Kind::argument_list) return index == 0 ? list : kNoNode;
  for (NodeId at = tree[list].first_child; at != kNoNode; at = tree[at].next_sibling) {
    const Kind kind = tree[at].kind;
    if (kind == Kind::list_splat) return kNoNode;
    if (kind == Kind::keyword_argument || kind == Kind::dictionary_splat) continue;
    if (index-- == 0) return at;
  }
  return kNoNode;
}

bool is_partial(const Module& module, NodeId call) {
  const std::string_view function = module.text(module.tree().child(call, Field::function));
  if (!module.imports_partial() || (function != "partial" && function != "functools.partial"))
    return false;
  return function == "partial" ? module.import_path(function) == "functools.partial"
                               : module.import_path("functools") == "functools";
}

NodeId Module::positional(NodeId call, std::size_t index) const {
  const NodeId given = in_place(call, index);
  const Call* made = given == kNoNode ? call_at(call) : nullptr;
  const std::string_view name =
      made == nullptr ? std::string_view{} : library_parameter(*this, *made, index);
  return name.empty() ? given : keyword(call, name);
}

NodeId Module::in_place(NodeId call, std::size_t index) const {
  const NodeId bound = bound_call(*this, call);
  if (bound == kNoNode) return own_positional(*this, call, index);
  std::size_t given = 0;  // what partial binds beside the function comes first
  while (own_positional(*this, bound, given + 1) != kNoNode) ++given;
  return index < given ? own_positional(*this, bound, index + 1)
                       : own_positional(*this, call, index - given);
}

std::size_t Module::positional_count(NodeId call) const {
  std::size_t count = 0;
  while (in_place(call, count) != kNoNode) ++count;
  return count;
}

// options = dict(lr=0.1, **options) in a loop is made of itself.
NodeId Module::keyword(NodeId call, std::string_view name, int depth) const {
  if (depth > kMaxDepth) return kNoNode;
  for (NodeId at = first_argument(*this, call); at != kNoNode; at = tree_[at].next_sibling) {
    if (tree_[at].kind == Kind::keyword_argument && text(tree_.child(at, Field::name)) == name)
      return tree_.child(at, Field::value);
    if (tree_[at].kind == Kind::dictionary_splat) {
      const NodeId value = value_in_mapping(*this, tree_[at].first_child, name, depth + 1);
      if (value != kNoNode) return value;
    }
  }
  // What partial has bound; the partial itself is no call of a partial.
  const NodeId bound = bound_call(*this, call);
  return bound == kNoNode || bound == call ? kNoNode : keyword(bound, name, depth + 1);
}

NodeId Module::argument(NodeId call, std::size_t index, std::string_view name) const {
  const NodeId by_keyword = keyword(call, name);
  return by_keyword != kNoNode ? by_keyword : positional(call, index);
}

std::vector<Argument> Module::arguments(NodeId call) const {
  std::vector<Argument> out;
  for (std::size_t i = 0;; ++i) {
    const NodeId at = in_place(call, i);
    if (at == kNoNode) break;
    out.push_back({{}, at, at});
  }
  add_keywords(*this, call, out);
  if (const NodeId bound = bound_call(*this, call); bound != kNoNode && bound != call)
    add_keywords(*this, bound, out);
  return out;
}

bool Module::has_splat(NodeId call) const {
  std::vector<Argument> seen;
  NodeId bound = bound_call(*this, call);
  for (int depth = 0; bound != kNoNode && bound != call && depth < kMaxDepth; ++depth) {
    if (!add_keywords(*this, bound, seen)) return true;
    const NodeId inner = bound_call(*this, bound);
    if (inner == bound) break;
    bound = inner;
  }
  return !add_keywords(*this, call, seen);
}

}  // namespace bench::diagnose
