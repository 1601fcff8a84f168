#include "diagnose/to_ddp/remaining/idle_layers.hpp"

#include "diagnose/to_ddp/parameterless.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/reach/unconditional.hpp"
#include "scenarios/pitfalls/wrappers/frozen.hpp"
#include "scenarios/pitfalls/wrappers/unnamed_layers.hpp"

#include <algorithm>
#include <set>

namespace bench::diagnose {
namespace {

using Names = std::set<std::string_view>;

void add_names(Ref subtree, Names& out) {
  const auto& tree = subtree.module->tree();
  for (NodeId at = subtree.node; at < tree[subtree.node].last; ++at)
    if (tree[at].kind == Kind::identifier) out.insert(tree.text(at));
}

// All names in the forward passes of what is wrapped, and in the methods that they name.
Names names_of_forward(const Program& program, const Wrap& wrap) {
  Names out;
  std::set<const Function*> known;
  std::vector<FunctionRef> methods;
  for (const ClassRef& cls : pitfalls::facts::wrapped_classes(program, wrap))
    for (const ClassRef& each : program.lineage(cls))
      for (const Function& function : each.module->functions())
        if (function.owner_class == each.cls->node && !function.makes_object())
          methods.push_back({each.module, &function});
  for (bool again = true; again;) {
    again = false;
    for (const FunctionRef& method : methods) {
      const std::string_view name = method.function->name;
      if ((name != "forward" && !out.contains(name)) || !known.insert(method.function).second)
        continue;
      add_names({method.module, method.function->body}, out);
      again = true;
    }
  }
  return out;
}

// self.head = nn.Linear(8, 2), nn.Sequential(...) or a class of the program.
bool makes_layer(const Program& program, Ref value) {
  const CallRef made = program.as_call(value);
  if (!made) return false;
  if (const ClassRef cls = program.class_of_call(made))
    return program.derives_from(cls, Api::module_class) && may_hold_parameters(program, value);
  if (!made.call->path.starts_with("torch.nn.") || !may_hold_parameters(program, value))
    return false;
  const std::string_view name = made.call->name;
  if (name != "Sequential" && name != "ModuleList" && name != "ModuleDict") return true;
  const auto inside = pitfalls::facts::calls_in(value);
  return std::any_of(inside.begin(), inside.end(), [&](const CallRef& each) {
    return each.call != made.call && makes_layer(program, each.ref());
  });
}

// The name stands in some other method of the class, where a use would be.
bool is_used_by_method(const Program& program, const ClassRef& cls, std::string_view name) {
  for (const ClassRef& each : program.lineage(cls))
    for (const Function& function : each.module->functions()) {
      if (function.owner_class != each.cls->node || function.makes_object()) continue;
      Names names;
      add_names({each.module, function.body}, names);
      if (names.contains(name)) return true;
    }
  return false;
}

// Something outside of methods other than __init__ says it again: another layer is made of it, or
// code that freezes.
bool is_said_elsewhere(const Program& program, Ref target, std::string_view name) {
  const bool freezes = program.mentions("requires_grad");
  for (const Module* module : program.modules()) {
    const auto& tree = module->tree();
    if (!tree.holds(name)) continue;
    for (NodeId at = 0; at < tree.size(); ++at) {
      if (tree[at].kind != Kind::identifier || tree.text(at) != name) continue;
      if (module == target.module && tree.contains(target.node, at)) continue;
      const FunctionRef around = program.enclosing_function({module, at});
      const bool is_method =
          around && around.function->owner_class != kNoNode && !around.function->makes_object();
      if (around && around.function->makes_object() && module == target.module) return true;
      if (!is_method && freezes) return true;
    }
  }
  return false;
}

}  // namespace

Ref layer_beside_forward(const Program& program, const Wrap& wrap, const ClassRef& cls) {
  if (!program.method(cls, "forward") || pitfalls::handles_layers_unnamed(program, cls) ||
      pitfalls::freezes_layers_unnamed(program))
    return {};
  const Names run = names_of_forward(program, wrap);
  for (const ClassRef& each : program.lineage(cls)) {
    const Function* init = each.module->method(*each.cls, "__init__");
    if (init == nullptr) continue;
    for (const Def& def : each.module->defs()) {
      const Ref target{each.module, def.target};
      if (!def.is_attribute || def.kind != DefKind::assign || def.value == kNoNode ||
          !each.module->tree().contains(init->node, def.target) ||
          target.child(Field::object).text() != "self" || run.contains(def.name) ||
          !makes_layer(program, target.with(def.value)))
        continue;
      if (pitfalls::is_unconditional(program, target) &&
          is_used_by_method(program, cls, def.name) &&
          !is_said_elsewhere(program, target, def.name))
        return target;
    }
  }
  return {};
}

Ref module_beside_forward(const Program& program, const Wrap& wrap, const ClassRef& cls) {
  const Function* init = cls.module->method(*cls.cls, "__init__");
  if (init == nullptr || !cls.module->method(*cls.cls, "forward") ||
      pitfalls::handles_layers_unnamed(program, cls))
    return {};
  const Names run = names_of_forward(program, wrap);
  for (const Def& def : cls.module->defs()) {
    const Ref target{cls.module, def.target};
    if (!def.is_attribute || def.kind != DefKind::assign || def.value == kNoNode ||
        !cls.module->tree().contains(init->node, def.target) ||
        target.child(Field::object).text() != "self" || run.contains(def.name) ||
        !pitfalls::facts::is_parameter(program, target.with(def.value)))
      continue;
    const ClassRef given = program.class_of(target.with(def.value));
    if (given && program.derives_from(given, Api::module_class) &&
        may_hold_parameters(program, target.with(def.value)) &&
        !pitfalls::is_frozen(program, target))
      return target;
  }
  return {};
}

}  // namespace bench::diagnose
