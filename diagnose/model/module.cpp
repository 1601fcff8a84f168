#include "diagnose/model/module.hpp"

#include "diagnose/model/arguments.hpp"
#include "diagnose/model/library_parameters.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

constexpr int kAliasDepth = 6;

// Names distinctive enough to be recognised where nothing in the file says what they are: after
// `from mine import *`, and in a piece of a script without its head of imports.
constexpr std::pair<std::string_view, std::string_view> kUsualNames[] = {
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
    {"SGD", "torch.optim.SGD"},
    {"Adam", "torch.optim.Adam"},
    {"AdamW", "torch.optim.AdamW"},
    {"SyncBatchNorm", "torch.nn.SyncBatchNorm"},
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

// {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}
bool holds_optimizers(const Module& module, NodeId table) {
  const SyntaxTree& tree = module.tree();
  if (table == kNoNode || tree[table].kind != Kind::dictionary) return false;
  const NodeId first = tree[table].first_child;
  return first != kNoNode && tree[first].kind == Kind::pair &&
         api_of(module.qualified(tree.child(first, Field::value))) == Api::optimizer;
}

// getattr(torch.optim, name), torch.optim.__dict__[name] and OPTIMIZERS[name], here or behind a
// name that has no other value: a class of optimizers that the run chooses.
bool is_chosen_optimizer(const Module& module, NodeId expression, bool behind_name = false) {
  if (expression == kNoNode) return false;
  const SyntaxTree& tree = module.tree();
  const Kind kind = tree[expression].kind;
  if (kind == Kind::call)
    return tree.text(tree.child(expression, Field::function)) == "getattr" &&
           module.qualified(own_positional(module, expression, 0)) == "torch.optim";
  if (kind == Kind::subscript) {
    const NodeId table = tree.child(expression, Field::value);
    if (table == kNoNode) return false;
    if (tree[table].kind == Kind::attribute &&
        tree.text(tree.child(table, Field::attribute)) == "__dict__")
      return module.qualified(tree.child(table, Field::object)) == "torch.optim";
    if (tree[table].kind != Kind::identifier) return false;
    const auto& values = module.defs_of(module.text(table), false);
    return module.text(table).starts_with("OPTIM") ||
           (values.size() == 1 && holds_optimizers(module, module.defs()[values.front()].value));
  }
  if (kind != Kind::identifier || behind_name) return false;
  const auto& defs = module.defs_of(module.text(expression), false);
  if (defs.size() != 1) return false;
  const Def& def = module.defs()[defs.front()];
  return def.kind == DefKind::assign && def.element < 0 &&
         is_chosen_optimizer(module, def.value, true);
}

}  // namespace

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
  for (const std::uint32_t index : functions_by_name_.of(name))
    if (functions_[index].owner_class == owner.node) return &functions_[index];
  return nullptr;
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

std::string Module::import_path(const Def& import) const {
  const std::string known(import_path(import.name));
  // What stands in for a name of torch, where that is not to be had, is not followed.
  if (known.starts_with("torch.") || tree_[import.target].kind != Kind::import_from) return known;
  const NodeId from = tree_.child(import.target, Field::module_name);
  std::string path(tree_.text(from));
  std::erase(path, ' ');
  if (!path.ends_with('.')) path += '.';
  for (NodeId at = tree_[import.target].first_child; at != kNoNode; at = tree_[at].next_sibling) {
    const bool aliased = tree_[at].kind == Kind::aliased_import;
    if (at != from && tree_.text(aliased ? tree_.child(at, Field::alias) : at) == import.name)
      return path.append(tree_.text(aliased ? tree_.child(at, Field::name) : at));
  }
  return known;
}

// Most ask for what a call calls, and do so again and again.
std::string Module::qualified(NodeId expression) const {
  if (paths_are_known_ && expression != kNoNode)
    if (const Call* const call = call_at(tree_[expression].parent);
        call != nullptr && call->function == expression)
      return std::string(call->path);
  return qualified(expression, 0);
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
  if (node.kind == Kind::call) return named_attribute(expression, depth);
  if (node.kind != Kind::identifier) return {};
  const std::string_view name = text(expression);
  if (const auto path = import_path(name); !path.empty()) return std::string(path);
  const auto& defs = defs_of(name, false);
  if (defs.empty()) {
    for (const auto& star : star_imports_) {
      const std::string full = star + "." + std::string(name);
      if (api_of(full) != Api::none) return full;
    }
    for (const auto& [known, full] : kUsualNames)
      if (known == name) return std::string(full);
    return {};
  }
  if (defs.size() != 1) return {};
  const Def& def = defs_[defs.front()];
  if (def.kind != DefKind::assign || def.element >= 0 || def.value == kNoNode) return {};
  if (tree_[def.value].kind == Kind::call) {  // make = partial(f, ...): what f is
    if (!is_partial(*this, def.value)) return named_attribute(def.value, depth + 1);
    return qualified(own_positional(*this, def.value, 0), depth + 1);
  }
  return qualified(def.value, depth + 1);
}

// torch.nn.DataParallel for getattr(torch.nn, "DataParallel"), models.net for
// importlib.import_module("models.net").
std::string Module::named_attribute(NodeId call, int depth) const {
  const std::string_view function = text(tree_.child(call, Field::function));
  if (function.ends_with("import_module")) {
    const NodeId path = own_positional(*this, call, 0);
    return path == kNoNode ? std::string() : tree_.string_value(path).value_or("");
  }
  if (function != "getattr") return {};
  const NodeId object = own_positional(*this, call, 0);
  const NodeId name = own_positional(*this, call, 1);
  const auto written = name == kNoNode ? std::nullopt : tree_.string_value(name);
  const std::string base = written ? qualified(object, depth + 1) : std::string{};
  return base.empty() ? base : base + "." + *written;
}

Api Module::api(NodeId expression) const { return api(expression, qualified(expression)); }

Api Module::api(NodeId expression, std::string_view name) const {
  if (name.empty()) return is_chosen_optimizer(*this, expression) ? Api::optimizer : Api::none;
  if (const Api known = api_of(name); known != Api::none) return known;
  // A function of the project's own dist.py is no function of torch's.
  if (tree_[expression].kind == Kind::identifier) return Api::none;
  // from utils import dist: torch.distributed, handed on by a file of the project
  constexpr std::string_view kHandedOn = ".dist.";
  const std::size_t at = name.find(kHandedOn);
  return at == std::string_view::npos
             ? Api::none
             : api_of("torch.distributed." + std::string(name.substr(at + kHandedOn.size())));
}

}  // namespace bench::diagnose
