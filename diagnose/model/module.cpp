#include "diagnose/model/module.hpp"

#include "diagnose/model/library_parameters.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

constexpr int kAliasDepth = 6;
constexpr int kMaxDepth = 8;  // dictionaries and partial calls within each other

const std::vector<std::uint32_t> kNoDefs;
const std::vector<NodeId> kNoNodes;

// Names distinctive enough to be recognised after `from mine import *`.
constexpr std::pair<std::string_view, std::string_view> kStarNames[] = {
    {"nn", "torch.nn"},
    {"DistributedDataParallel", "torch.nn.parallel.DistributedDataParallel"},
    {"DDP", "torch.nn.parallel.DistributedDataParallel"},
    {"DataParallel", "torch.nn.DataParallel"},
    {"DistributedSampler", "torch.utils.data.distributed.DistributedSampler"},
    {"DataLoader", "torch.utils.data.DataLoader"},
    {"init_process_group", "torch.distributed.init_process_group"},
    {"torch", "torch"},
    {"F", "torch.nn.functional"},
    {"optim", "torch.optim"},
    {"dist", "torch.distributed"},
    {"mp", "torch.multiprocessing"},
    {"os", "os"},
    {"time", "time"},
    {"pl", "pytorch_lightning"},
    {"LightningModule", "pytorch_lightning.LightningModule"},
    {"LightningDataModule", "pytorch_lightning.LightningDataModule"},
    {"hvd", "horovod.torch"},
    {"Accelerator", "accelerate.Accelerator"},
};

// An argument that stands in the call itself.
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
  if (function != "partial" && function != "functools.partial") return false;
  return function == "partial" ? module.import_path(function) == "functools.partial"
                               : module.import_path("functools") == "functools";
}

// make = partial(f, ...) for a call make(...), when the name has that one meaning.
NodeId bound_call(const Module& module, NodeId call) {
  if (module.import_path("partial") != "functools.partial" &&
      module.import_path("functools") != "functools")
    return kNoNode;
  const NodeId function = module.tree().child(call, Field::function);
  if (function == kNoNode || module[function].kind != Kind::identifier) return kNoNode;
  const auto& defs = module.defs_of(module.text(function), false);
  if (defs.size() != 1) return kNoNode;
  const Def& def = module.defs()[defs.front()];
  const bool is_call = def.kind == DefKind::assign && def.element < 0 && def.value != kNoNode &&
                       module[def.value].kind == Kind::call;
  return is_call && is_partial(module, def.value) ? def.value : kNoNode;
}

}  // namespace

const std::vector<std::uint32_t>& Module::item_defs_of(std::string_view container) const {
  const auto found = items_.find(container);
  return found == items_.end() ? kNoDefs : found->second;
}

const Call* Module::call_at(NodeId node) const {
  const auto at = std::lower_bound(calls_.begin(), calls_.end(), node,
                                   [](const Call& call, NodeId id) { return call.node < id; });
  return at != calls_.end() && at->node == node ? &*at : nullptr;
}

const std::vector<std::uint32_t>& Module::defs_of(std::string_view name, bool attribute) const {
  const auto& table = attribute ? attributes_ : names_;
  const auto found = table.find(name);
  return found == table.end() ? kNoDefs : found->second;
}

const Function* Module::function_at(NodeId node) const {
  const auto at = std::lower_bound(functions_.begin(), functions_.end(), node,
                                   [](const Function& f, NodeId id) { return f.node < id; });
  return at != functions_.end() && at->node == node ? &*at : nullptr;
}

const Class* Module::class_at(NodeId node) const {
  const auto at = std::lower_bound(classes_.begin(), classes_.end(), node,
                                   [](const Class& c, NodeId id) { return c.node < id; });
  return at != classes_.end() && at->node == node ? &*at : nullptr;
}

const Function* Module::method(const Class& owner, std::string_view name) const {
  for (const auto& function : functions_)
    if (function.owner_class == owner.node && function.name == name) return &function;
  return nullptr;
}

const std::vector<NodeId>& Module::nodes_of(Kind kind) const {
  const auto found = listed_.find(static_cast<std::uint8_t>(kind));
  return found == listed_.end() ? kNoNodes : found->second;
}

bool Module::imports_top_level(std::string_view package) const {
  return std::any_of(imports_.begin(), imports_.end(), [&](const std::string& name) {
    return name.starts_with(package) &&
           (name.size() == package.size() || name[package.size()] == '.');
  });
}

std::string_view Module::import_path(std::string_view name) const {
  const auto found = import_paths_.find(name);
  return found == import_paths_.end() ? std::string_view{} : std::string_view(found->second);
}

std::string Module::qualified(NodeId expression, int depth) const {
  if (expression == kNoNode || depth > kAliasDepth) return {};
  const Node& node = tree_[expression];
  if (node.kind == Kind::attribute) {
    std::string base = qualified(tree_.child(expression, Field::object), depth + 1);
    if (base.empty()) return {};
    base += '.';
    base += text(tree_.child(expression, Field::attribute));
    return base;
  }
  if (node.kind != Kind::identifier) return {};
  const std::string_view name = text(expression);
  if (const auto path = import_path(name); !path.empty()) return std::string(path);
  const auto& defs = defs_of(name, false);
  if (defs.empty()) {
    if (star_imports_.empty()) return {};
    for (const auto& star : star_imports_) {
      const std::string full = star + "." + std::string(name);
      if (api_of(full) != Api::none) return full;
    }
    for (const auto& [known, full] : kStarNames)
      if (known == name) return std::string(full);
    return {};
  }
  if (defs.size() != 1) return {};
  const Def& def = defs_[defs.front()];
  if (def.kind != DefKind::assign || def.element >= 0 || def.value == kNoNode) return {};
  if (tree_[def.value].kind == Kind::call) {  // make = partial(f, ...): what f is
    if (!is_partial(*this, def.value)) return {};
    return qualified(own_positional(*this, def.value, 0), depth + 1);
  }
  return qualified(def.value, depth + 1);
}

Api Module::api(NodeId expression) const {
  const std::string name = qualified(expression);
  if (name.empty()) return Api::none;
  if (const Api known = api_of(name); known != Api::none) return known;
  // A function of the project's own dist.py is no function of torch's.
  if (tree_[expression].kind == Kind::identifier) return Api::none;
  // from utils import dist: torch.distributed, handed on by a file of the project
  constexpr std::string_view kHandedOn = ".dist.";
  const std::size_t at = name.find(kHandedOn);
  return at == std::string::npos
             ? Api::none
             : api_of("torch.distributed." + name.substr(at + kHandedOn.size()));
}

NodeId Module::scope_of(NodeId node) const {
  for (NodeId at = tree_[node].parent; at != kNoNode; at = tree_[at].parent) {
    const Kind kind = tree_[at].kind;
    if (kind == Kind::function || kind == Kind::lambda || kind == Kind::class_definition) return at;
  }
  return 0;
}

NodeId Module::function_of(NodeId node) const {
  const NodeId found = tree_.ancestor(node, Kind::function);
  return found == kNoNode ? 0 : found;
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

// The only value of the name, or the last one above it in its function, in a block that holds it:
// each branch of an if may have one of its own.
const Def* Module::last_value_above(NodeId name) const {
  const auto& defs = defs_of(text(name), false);
  // options = dict(lr=0.1, **options): the name in the value is what it was above.
  const auto holds = [&](const Def& def) {
    return def.value != kNoNode && tree_.contains(def.value, name);
  };
  if (defs.size() == 1) return holds(defs_[defs.front()]) ? nullptr : &defs_[defs.front()];
  const Def* last = nullptr;
  for (const std::uint32_t index : defs)
    if (const Def& def = defs_[index]; def.target < name && !holds(def) &&
                                       function_of(def.target) == function_of(name) &&
                                       (last == nullptr || def.target > last->target))
      last = &def;
  if (last == nullptr) return nullptr;
  NodeId block = last->target;
  while (block != kNoNode && block != 0 && tree_[block].kind != Kind::block)
    block = tree_[block].parent;
  return block != kNoNode && tree_.contains(block, name) && last->element < 0 ? last : nullptr;
}

// Value of `name` in a dictionary literal, or in dict(...), behind a ** argument.
NodeId Module::splatted_value(NodeId dictionary, std::string_view name, int depth) const {
  if (dictionary == kNoNode) return kNoNode;
  const Kind kind = tree_[dictionary].kind;
  if (kind == Kind::call && text(tree_.child(dictionary, Field::function)) == "dict")
    return keyword(dictionary, name, depth + 1);
  if (kind == Kind::identifier) {
    // options["name"] = value, above the call in the same function
    for (const std::string_view quote : {"\"", "'"}) {
      const std::string item = std::string(text(dictionary)) + "[" + std::string(quote) +
                               std::string(name) + std::string(quote) + "]";
      for (const std::uint32_t index : defs_of(item, false))
        if (const Def& def = defs_[index]; def.kind == DefKind::assign && def.target < dictionary &&
                                           def.element < 0 &&
                                           function_of(def.target) == function_of(dictionary))
          return def.value;
    }
    const Def* def = last_value_above(dictionary);
    if (def == nullptr || def->kind != DefKind::assign) return kNoNode;
    const NodeId value = def->value;
    if (value == kNoNode || tree_[value].kind == Kind::identifier) return kNoNode;
    return splatted_value(value, name, depth + 1);
  }
  if (kind != Kind::dictionary) return kNoNode;
  for (NodeId at = tree_[dictionary].first_child; at != kNoNode; at = tree_[at].next_sibling) {
    if (tree_[at].kind != Kind::pair) continue;
    const auto key = tree_.string_value(tree_.child(at, Field::key));
    if (key && *key == name) return tree_.child(at, Field::value);
  }
  return kNoNode;
}

// options = dict(lr=0.1, **options) in a loop is made of itself.
NodeId Module::keyword(NodeId call, std::string_view name, int depth) const {
  if (depth > kMaxDepth) return kNoNode;
  const NodeId list = tree_.child(call, Field::arguments);
  if (list == kNoNode) return kNoNode;
  for (NodeId at = tree_[list].first_child; at != kNoNode; at = tree_[at].next_sibling) {
    if (tree_[at].kind == Kind::keyword_argument && text(tree_.child(at, Field::name)) == name)
      return tree_.child(at, Field::value);
    if (tree_[at].kind == Kind::dictionary_splat) {
      const NodeId value = splatted_value(tree_[at].first_child, name, depth + 1);
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

namespace {

bool splats(const SyntaxTree& tree, NodeId call) {
  const NodeId list = tree.child(call, Field::arguments);
  if (list == kNoNode) return false;
  for (NodeId at = tree[list].first_child; at != kNoNode; at = tree[at].next_sibling)
    if (tree[at].kind == Kind::dictionary_splat || tree[at].kind == Kind::list_splat) return true;
  return false;
}

}  // namespace

bool Module::has_splat(NodeId call) const {
  NodeId bound = bound_call(*this, call);
  for (int depth = 0; bound != kNoNode && bound != call && depth < kMaxDepth; ++depth) {
    if (splats(tree_, bound)) return true;
    const NodeId inner = bound_call(*this, bound);
    if (inner == bound) break;
    bound = inner;
  }
  return splats(tree_, call);
}

}  // namespace bench::diagnose
