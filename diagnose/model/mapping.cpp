// Dictionaries behind ** as one file shows them: {"lr": 0.1}, dict(lr=0.1), {**base, "lr": 0.1} and
// base | extra, by a name, as an item of another one, or given back by a function.
#include "diagnose/model/arguments.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

// Dictionaries within each other, and beside each other in one: each ** costs as much as a level,
// so that wide and deep ones together stay cheap.
constexpr int kMaxDepth = 8;
constexpr std::ptrdiff_t kMostCalls = 500;  // that are looked at for what may change a dictionary

// The only value of the name, or the last one above it in its function, in a block that holds it:
// each branch of an if may have one of its own.
const Def* last_value_above(const Module& module, NodeId name) {
  const SyntaxTree& tree = module.tree();
  const auto& defs = module.defs_of(module.text(name), false);
  // options = dict(lr=0.1, **options): the name in the value is what it was above.
  const auto holds = [&](const Def& def) {
    return def.value != kNoNode && tree.contains(def.value, name);
  };
  if (defs.size() == 1) {
    const Def& only = module.defs()[defs.front()];
    return holds(only) ? nullptr : &only;
  }
  const Def* last = nullptr;
  for (const std::uint32_t index : defs)
    if (const Def& def = module.defs()[index];
        def.target < name && !holds(def) &&
        module.function_of(def.target) == module.function_of(name) &&
        (last == nullptr || def.target > last->target))
      last = &def;
  if (last == nullptr) return nullptr;
  NodeId block = last->target;
  while (block != kNoNode && block != 0 && tree[block].kind != Kind::block)
    block = tree[block].parent;
  return block != kNoNode && tree.contains(block, name) && last->element < 0 ? last : nullptr;
}

bool is_dict_call(const Module& module, NodeId node) {
  return module[node].kind == Kind::call &&
         module.text(module.tree().child(node, Field::function)) == "dict";
}

// What a function of the file gives back, where it has one return and the name one meaning.
NodeId given_back(const Module& module, NodeId call) {
  const NodeId name = module.tree().child(call, Field::function);
  if (name == kNoNode || module[name].kind != Kind::identifier) return kNoNode;
  const auto& defs = module.defs_of(module.text(name), false);
  if (defs.size() != 1 || module.defs()[defs.front()].kind != DefKind::function) return kNoNode;
  for (const Function& function : module.functions())
    if (function.name == module.text(name) && function.owner_class == kNoNode)
      return function.returns.size() == 1 ? function.returns.front() : kNoNode;
  return kNoNode;
}

// options["lr"] = value, above the name in the same function.
NodeId stored_above(const Module& module, NodeId name, std::string_view key) {
  if (module.item_defs_of(module.text(name)).empty()) return kNoNode;
  for (const std::string_view quote : {"\"", "'"}) {
    const std::string item = std::string(module.text(name)) + "[" + std::string(quote) +
                             std::string(key) + std::string(quote) + "]";
    for (const std::uint32_t index : module.defs_of(item, false))
      if (const Def& def = module.defs()[index];
          def.kind == DefKind::assign && def.target < name && def.element < 0 &&
          module.function_of(def.target) == module.function_of(name))
        return def.value;
  }
  return kNoNode;
}

// options.pop("lr") between the two, in whatever branch: the item may be gone.
bool may_be_taken_out(const Module& module, NodeId name, NodeId since, std::string_view key) {
  const SyntaxTree& tree = module.tree();
  const auto pops = module.calls_of("pop");
  return std::any_of(pops.begin(), pops.end(), [&](std::uint32_t index) {
    const Call& pop = module.calls()[index];
    const NodeId given = own_positional(module, pop.node, 0);
    return pop.node > since && pop.node < name && given != kNoNode &&
           tree.string_value(given) == key && module[pop.function].kind == Kind::attribute &&
           module.text(tree.child(pop.function, Field::object)) == module.text(name) &&
           module.function_of(pop.node) == module.function_of(name);
  });
}

// What the expression is another way to say: the value of a name, what a function gives back, an
// item of a nested dictionary. Itself where it is a mapping of its own, kNoNode where unseen.
NodeId behind(const Module& module, NodeId mapping, int depth) {
  const SyntaxTree& tree = module.tree();
  switch (module[mapping].kind) {
    case Kind::identifier: {
      const Def* def = last_value_above(module, mapping);
      return def == nullptr || def->kind != DefKind::assign || def->element >= 0 ? kNoNode
                                                                                 : def->value;
    }
    case Kind::call:
      return is_dict_call(module, mapping) ? mapping : given_back(module, mapping);
    case Kind::subscript: {
      const auto key = tree.string_value(tree.child(mapping, Field::subscript));
      const NodeId holder = tree.child(mapping, Field::value);
      return key && holder != kNoNode ? value_in_mapping(module, holder, *key, depth + 1) : kNoNode;
    }
    case Kind::dictionary:
      return mapping;
    case Kind::binary:
      return tree[mapping].op == Op::bit_or ? mapping : kNoNode;
    default:
      return kNoNode;
  }
}

// The latest item of that key in {...}, which is the one that counts.
NodeId value_in_display(const Module& module, NodeId display, std::string_view key, int depth) {
  const SyntaxTree& tree = module.tree();
  NodeId found = kNoNode;
  for (NodeId at = tree[display].first_child; at != kNoNode; at = tree[at].next_sibling) {
    NodeId value = kNoNode;
    if (tree[at].kind == Kind::dictionary_splat)
      value = value_in_mapping(module, tree[at].first_child, key, ++depth);
    else if (tree[at].kind == Kind::pair && tree.string_value(tree.child(at, Field::key)) == key)
      value = tree.child(at, Field::value);
    if (value != kNoNode) found = value;
  }
  return found;
}

NodeId value_in_dict_call(const Module& module, NodeId call, std::string_view key, int depth) {
  const SyntaxTree& tree = module.tree();
  const NodeId list = tree.child(call, Field::arguments);
  if (list == kNoNode || tree[list].kind != Kind::argument_list) return kNoNode;
  NodeId from_base = kNoNode;
  for (NodeId at = tree[list].first_child; at != kNoNode; at = tree[at].next_sibling) {
    if (tree[at].kind == Kind::keyword_argument) {
      if (tree.text(tree.child(at, Field::name)) == key) return tree.child(at, Field::value);
      continue;
    }
    const NodeId base = tree[at].kind == Kind::dictionary_splat ? tree[at].first_child : at;
    if (from_base == kNoNode) from_base = value_in_mapping(module, base, key, ++depth);
  }
  return from_base;
}

// Adds the item; the later of two with one key is the one that counts.
void add_item(std::vector<Argument>& out, Argument item) {
  const auto same = std::find_if(out.begin(), out.end(), [&](const Argument& each) {
    return !each.name.empty() && each.name == item.name;
  });
  if (same != out.end())
    *same = std::move(item);
  else
    out.push_back(std::move(item));
}

bool adds_nothing(std::string_view function) {
  static constexpr std::string_view kNames[] = {"print", "get",  "items", "keys", "values",
                                                "copy",  "dict", "len",   "info", "str"};
  return std::find(std::begin(kNames), std::end(kNames), function) != std::end(kNames);
}

// options.update(more), options.pop("lr") or complete(options) between the value and the use.
bool may_be_changed(const Module& module, NodeId name, NodeId since) {
  const std::string_view text = module.text(name);
  const SyntaxTree& tree = module.tree();
  const auto& calls = module.calls();
  auto call = std::lower_bound(calls.begin(), calls.end(), since,
                               [](const Call& each, NodeId id) { return each.node < id; });
  const auto first = call;
  for (; call != calls.end() && call->node < name; ++call) {
    if (call - first > kMostCalls) return true;
    if (adds_nothing(call->name)) continue;
    if (module[call->function].kind == Kind::attribute &&
        module.text(tree.child(call->function, Field::object)) == text)
      return true;
    for (std::size_t i = 0;; ++i) {
      const NodeId given = own_positional(module, call->node, i);
      if (given == kNoNode) break;
      if (module[given].kind == Kind::identifier && module.text(given) == text) return true;
    }
  }
  return false;
}

// Adds options["lr"] = value of the same function; false for a key that cannot be read.
bool add_stored(const Module& module, NodeId name, std::vector<Argument>& out) {
  const SyntaxTree& tree = module.tree();
  bool all_seen = true;
  for (const std::uint32_t index : module.item_defs_of(module.text(name))) {
    const Def& def = module.defs()[index];
    if (def.target > name || module.function_of(def.target) != module.function_of(name)) continue;
    auto key = tree.string_value(tree.child(def.target, Field::subscript));
    if (key && def.kind == DefKind::assign && def.value != kNoNode && def.element < 0)
      add_item(out, {std::move(*key), def.value, def.value});
    else
      all_seen = false;
  }
  return all_seen;
}

// Adds what stands in {...}, dict(...) or a | b.
bool add_display(const Module& module, NodeId display, std::vector<Argument>& out, int depth) {
  const SyntaxTree& tree = module.tree();
  if (tree[display].kind == Kind::binary) {
    const bool left = add_items(module, tree.child(display, Field::left), out, depth + 1);
    return add_items(module, tree.child(display, Field::right), out, depth + 1) && left;
  }
  const NodeId items =
      tree[display].kind == Kind::call ? tree.child(display, Field::arguments) : display;
  if (items == kNoNode) return false;
  bool all_seen = true;
  for (NodeId at = tree[items].first_child; at != kNoNode; at = tree[at].next_sibling) {
    if (tree[at].kind == Kind::keyword_argument) {
      add_item(out, {std::string(tree.text(tree.child(at, Field::name))),
                     tree.child(at, Field::value), at});
    } else if (tree[at].kind == Kind::pair) {
      auto key = tree.string_value(tree.child(at, Field::key));
      all_seen = all_seen && key.has_value();
      if (key) add_item(out, {std::move(*key), tree.child(at, Field::value), at});
    } else {
      const bool is_splat = tree[at].kind == Kind::dictionary_splat;
      all_seen = add_items(module, is_splat ? tree[at].first_child : at, out, ++depth) && all_seen;
    }
  }
  return all_seen;
}

// Adds what options.update(lr=0.1), options.update({...}) and options.update(dict(...)) put in
// between the dictionary and the use of its name. Under a condition they may be missing, so that
// may_be_changed() still says that not all is seen.
void add_updated(const Module& module, NodeId name, NodeId since, std::vector<Argument>& out,
                 int depth) {
  const SyntaxTree& tree = module.tree();
  const auto& calls = module.calls();
  auto call = std::lower_bound(calls.begin(), calls.end(), since,
                               [](const Call& each, NodeId id) { return each.node < id; });
  const auto first = call;
  for (; call != calls.end() && call->node < name && call - first <= kMostCalls; ++call)
    if (call->name == "update" && module[call->function].kind == Kind::attribute &&
        module.text(tree.child(call->function, Field::object)) == module.text(name) &&
        module.function_of(call->node) == module.function_of(name))
      add_display(module, call->node, out, depth + 1);
}

}  // namespace

NodeId value_in_mapping(const Module& module, NodeId mapping, std::string_view key, int depth) {
  if (mapping == kNoNode || depth > kMaxDepth) return kNoNode;
  if (module[mapping].kind == Kind::identifier)
    if (const NodeId stored = stored_above(module, mapping, key); stored != kNoNode) return stored;
  const NodeId display = behind(module, mapping, depth);
  if (display == kNoNode) return kNoNode;
  if (module[mapping].kind == Kind::identifier && may_be_taken_out(module, mapping, display, key))
    return kNoNode;
  if (display != mapping) return value_in_mapping(module, display, key, depth + 1);
  if (module[display].kind == Kind::dictionary)
    return value_in_display(module, display, key, depth);
  if (module[display].kind == Kind::call) return value_in_dict_call(module, display, key, depth);
  const NodeId later =
      value_in_mapping(module, module.tree().child(display, Field::right), key, depth + 1);
  return later != kNoNode
             ? later
             : value_in_mapping(module, module.tree().child(display, Field::left), key, depth + 1);
}

bool add_items(const Module& module, NodeId mapping, std::vector<Argument>& out, int depth) {
  if (mapping == kNoNode || depth > kMaxDepth) return false;
  const NodeId display = behind(module, mapping, depth);
  const bool is_name = module[mapping].kind == Kind::identifier;
  bool all_seen = display != kNoNode;
  if (all_seen)
    all_seen = display == mapping ? add_display(module, display, out, depth)
                                  : add_items(module, display, out, depth + 1);
  if (!is_name) return all_seen;
  const bool stored = add_stored(module, mapping, out);
  if (display != kNoNode) add_updated(module, mapping, display, out, depth);
  if (display != kNoNode)
    std::erase_if(out, [&](const Argument& each) {
      return !each.name.empty() && may_be_taken_out(module, mapping, display, each.name);
    });
  return all_seen && stored && !may_be_changed(module, mapping, display);
}

}  // namespace bench::diagnose
