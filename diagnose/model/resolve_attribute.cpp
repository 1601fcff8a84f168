// Where the value of an attribute comes from: assignments in its class, assignments to the
// attribute of an object of the same name, options of a command line.
#include "diagnose/model/reaching.hpp"
#include "diagnose/model/resolver.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

// self.args for args after args = self.args in the same function.
std::string_view alias_of(Ref object) {
  const Module& module = *object.module;
  for (const std::uint32_t index : module.defs_of(object.text(), false)) {
    const Def& def = module.defs()[index];
    if (def.kind == DefKind::assign && def.element < 0 && def.value != kNoNode &&
        module[def.value].kind == Kind::attribute &&
        module.function_of(def.target) == module.function_of(object.node))
      return module.text(def.value);
  }
  return {};
}

// The attribute an add_argument call fills: dest, else the first long option.
std::string argument_name(const CallRef& call) {
  const SyntaxTree& tree = call.module->tree();
  if (const Ref dest = call.keyword("dest"))
    if (auto name = tree.string_value(dest.node)) return *name;
  std::string best;
  for (std::size_t i = 0;; ++i) {
    const Ref at = call.positional(i);
    if (!at) break;
    auto option = tree.string_value(at.node);
    if (!option) continue;
    const bool is_long = option->starts_with("--");
    option->erase(0, option->find_first_not_of('-'));
    std::replace(option->begin(), option->end(), '-', '_');
    if (best.empty() || is_long) best = *option;
    if (is_long) break;
  }
  return best;
}

// The method goes on to assign the attribute again, whatever happens, before another one than what
// it calls in between can see it: self.model = model.to(device); self.model = DDP(self.model).
bool is_replaced(const Module& module, const Def& def, const std::vector<const Def*>& others,
                 NodeId user) {
  const SyntaxTree& tree = module.tree();
  const NodeId method = module.function_of(def.target);
  const auto at_top = [&](NodeId target) {
    NodeId block = tree[target].parent;
    while (block != kNoNode && tree[block].kind != Kind::block) block = tree[block].parent;
    return block != kNoNode && tree[block].parent == method;
  };
  return std::any_of(others.begin(), others.end(), [&](const Def* other) {
    if (other->target <= def.target || other->kind != DefKind::assign ||
        module.function_of(other->target) != method || !at_top(other->target))
      return false;
    const Function* by = user == kNoNode ? nullptr : module.function_at(user);
    return std::none_of(module.calls().begin(), module.calls().end(), [&](const Call& call) {
      return call.node > def.target && call.node < other->target &&
             (by == nullptr || call.name == by->name) &&
             tree.text(call.function).starts_with("self.");
    });
  });
}

}  // namespace

void Resolver::follow_attribute(Ref at, int element, int depth) {
  const Module& module = *at.module;
  if (const std::string name = module.qualified(at.node); !name.empty()) {
    if (!follow_imported(module, name, element, depth)) emit(at, element);
    return;
  }
  const Ref object = at.child(Field::object);
  const Ref attribute = at.child(Field::attribute);
  if (!object || !attribute) return emit(at, element, Source::How::unknown);
  const std::string_view name = attribute.text();
  const std::size_t before = out.size();
  const ClassRef owner = object.text() == "self" ? program_.enclosing_class(at) : ClassRef{};
  if (owner) {
    follow_class_attribute(owner, name, at, element, depth);
  } else if (object.kind() == Kind::identifier || object.kind() == Kind::attribute) {
    follow_namespace(object, name, at, element, depth);
  }
  if (out.size() == before) emit(at, element, Source::How::unknown);
}

void Resolver::follow_class_attribute(ClassRef owner, std::string_view name, Ref use, int element,
                                      int depth) {
  const Module& module = *owner.module;
  std::vector<const Def*> found;
  for (const std::uint32_t index : module.defs_of(name, true)) {
    const Def& def = module.defs()[index];
    if (!module.tree().contains(owner.cls->node, def.target) || def.kind == DefKind::augmented)
      continue;
    if (module.text(module.tree().child(def.target, Field::object)) == "self")
      found.push_back(&def);
  }
  const Module* at = use.module;
  const NodeId here = at->function_of(use.node);
  bool local = false;
  // Within the method that assigns it, the latest assignment above is the one that holds.
  for (auto def = found.rbegin(); def != found.rend() && !local; ++def) {
    if (at != &module || module.function_of((*def)->target) != here) continue;
    if (!reaches(module, **def, use.node)) continue;
    follow_def(module, **def, element, depth);
    local = dominates(module, **def, use.node);
  }
  if (local) return;
  for (const Def* def : found)
    if ((at != &module || module.function_of(def->target) != here || def->target > use.node) &&
        !is_replaced(module, *def, found, at == &module ? here : kNoNode))
      follow_def(module, *def, element, depth);
  for (const std::uint32_t index : module.defs_of(name, false)) {
    const Def& def = module.defs()[index];
    if (def.scope == owner.cls->node && def.kind == DefKind::assign)
      follow_def(module, def, element, depth);
  }
}

// args.gpu = ..., cfg.batch_size = ..., an argparse option, or an object of a local class.
void Resolver::follow_namespace(Ref object, std::string_view name, Ref use, int element,
                                int depth) {
  const std::string_view object_text = object.text();
  const std::string_view alias = alias_of(object);
  bool found = false;
  for (const Module* module : program_.modules()) {
    for (const std::uint32_t index : module->defs_of(name, true)) {
      const Def& def = module->defs()[index];
      if (def.kind == DefKind::augmented) continue;
      const std::string_view owner = module->text(module->tree().child(def.target, Field::object));
      if (owner != object_text && (alias.empty() || owner != alias)) continue;
      if (module == use.module &&
          module->function_of(def.target) == module->function_of(use.node) &&
          !reaches(*module, def, use.node))
        continue;
      follow_def(*module, def, element, depth);
      found = true;
    }
  }
  if (found) return;
  if (const ClassRef owner = program_.class_of(object)) {
    follow_class_attribute(owner, name, use, element, depth);
    return;
  }
  for (const CallRef& call : program_.calls_named("add_argument")) {
    if (argument_name(call) == name) emit(call.ref(), element, Source::How::argument);
  }
}

}  // namespace bench::diagnose
