// Where the value of an attribute comes from: assignments in its class, assignments to the
// attribute of an object of the same name, options of a command line.
#include "diagnose/model/object_names.hpp"
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
  const auto may_leave_above = [&](NodeId target) {  // if not distributed: return
    const auto& returns = module.nodes_of(Kind::return_statement);
    return std::any_of(returns.begin(), returns.end(), [&](NodeId at) {
      return at > def.target && at < target && module.function_of(at) == method;
    });
  };
  return std::any_of(others.begin(), others.end(), [&](const Def* other) {
    if (other->target <= def.target || other->kind != DefKind::assign ||
        module.function_of(other->target) != method || !at_top(other->target) ||
        may_leave_above(other->target))
      return false;
    const Function* by = user == kNoNode ? nullptr : module.function_at(user);
    return std::none_of(module.calls().begin(), module.calls().end(), [&](const Call& call) {
      return call.node > def.target && call.node < other->target &&
             (by == nullptr || call.name == by->name) &&
             tree.text(call.function).starts_with("self.");
    });
  });
}

// name: type, with or without a value.
bool is_annotated(const Module& module, const Def& def) {
  const std::string_view rest = module.tree().source().substr(module[def.target].end);
  const std::size_t next = rest.find_first_not_of(' ');
  return next != std::string_view::npos && rest[next] == ':';
}

// How many fields of a data class stand above the one.
std::size_t fields_above(const Module& module, const Def& field) {
  return static_cast<std::size_t>(
      std::count_if(module.defs().begin(), module.defs().end(), [&](const Def& def) {
        return def.scope == field.scope && def.kind == DefKind::assign &&
               def.target < field.target && is_annotated(module, def);
      }));
}

// Classes whose objects have what they are made with as attributes.
bool makes_namespace(std::string_view name) {
  static constexpr std::string_view kNames[] = {"SimpleNamespace", "Namespace", "EasyDict", "edict",
                                                "AttrDict",        "Munch",     "DotMap",   "Box"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
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
  if (follow_looked_up_attribute(object, name, depth)) return;
  const std::size_t before = progress();
  const ClassRef owner = object.text() == "self" ? program_.enclosing_class(at) : ClassRef{};
  if (owner) {
    follow_class_attribute(owner, name, at, element, depth);
  } else if (stands_for_object(object)) {
    follow_namespace(object, name, at, element, depth);
  } else if (object.kind() == Kind::call) {  // make_parts().loader
    if (const ClassRef made = program_.class_of(object))
      follow_class_attribute(made, name, at, element, depth);
  }
  if (progress() == before) emit(at, element, Source::How::unknown);
}

bool Resolver::tells_more_than_none(std::size_t before) const {
  return std::any_of(out.begin() + static_cast<std::ptrdiff_t>(before), out.end(),
                     [](const Source& source) { return source.ref.kind() != Kind::none_literal; });
}

// trainer.model = DDP(trainer.model) where the object was made: self.model is that in its methods.
void Resolver::follow_given_from_outside(ClassRef owner, std::string_view name, int element,
                                         int depth) {
  constexpr int kMostDefinitions = 8;
  int looked_at = 0;
  for (const auto& [module, def, object_text] : program_.attribute_defs(name)) {
    if (def->kind != DefKind::assign || object_text == "self" || object_text == "cls") continue;
    const Ref object = Ref{module, def->target}.child(Field::object);
    if (object.kind() != Kind::identifier) continue;
    if (++looked_at > kMostDefinitions) return;
    if (program_.class_of(object) == owner) follow_def(*module, *def, element, depth);
  }
}

namespace {

// The method runs in no object of the derived class: that has one of its own, or of all that calls
// it, and hands nothing on to the base.
bool is_replaced_in(const Program& program, ClassRef derived, FunctionRef method) {
  const auto has_own = [&](std::string_view name) {
    return derived.module->method(*derived.cls, name) != nullptr;
  };
  if (has_own(method.function->name)) return true;
  const std::string asked = "self." + std::string(method.function->name);
  if (Ref{derived.module, derived.cls->node}.text().find(asked + "(") != std::string_view::npos)
    return false;
  const auto sites = program.calls_named(method.function->name);
  for (const CallRef& call : sites) {
    // MultiTrainer().fit() itself.
    if (call.module != method.module || call.module->text(call.call->function) != asked)
      return false;
    const Function* caller = call.module->function_at(call.module->function_of(call.call->node));
    const Function* own =
        caller == nullptr ? nullptr : derived.module->method(*derived.cls, caller->name);
    if (own == nullptr ||
        Ref{derived.module, own->body}.text().find("super(") != std::string_view::npos)
      return false;
  }
  return !sites.empty();
}

}  // namespace

// In the class itself, else in its bases, else in the classes derived from it.
void Resolver::follow_class_attribute(ClassRef owner, std::string_view name, Ref use, int element,
                                      int depth) {
  follow_given_from_outside(owner, name, element, depth);
  const std::size_t before = out.size();
  bool found = false;
  for (const ClassRef& cls : program_.lineage(owner)) {
    if (found) {
      follow_updates(cls, name, use, element, depth);
      follow_set_by_name(cls, name, element, depth);  // setattr(self, "net" + name, DDP(net))
      continue;
    }
    follow_own_attribute(cls, name, use, element, depth);
    follow_set_by_name(cls, name, element, depth);
    found = tells_more_than_none(before);
  }
  if (found) {
    const FunctionRef user = program_.enclosing_function(use);
    for (const ClassRef& derived : program_.derived_in_use(owner)) {
      const bool is_replaced = user && is_replaced_in(program_, derived, user);
      if (!is_replaced) follow_updates(derived, name, use, element, depth);
    }
    return;
  }
  for (const ClassRef& derived : program_.derived_in_use(owner))
    follow_own_attribute(derived, name, use, element, depth);
}

// A factory of many models fills the list before the line that wraps what it made: the wrapper
// takes the place of the last of them.
void Resolver::keep_wrapper(const Module& module, const std::vector<const Def*>& found) {
  for (const Def* def : found) {
    const Call* made = def->value == kNoNode ? nullptr : module.call_at(def->value);
    if (made == nullptr || (made->api != Api::ddp && made->api != Api::data_parallel)) continue;
    const Ref wrapper{&module, def->value};
    if (std::none_of(out.begin(), out.end(),
                     [&](const Source& source) { return source.ref == wrapper; }))
      out.back() = {wrapper, Source::How::value, -1};
    return;
  }
}

void Resolver::follow_own_attribute(ClassRef owner, std::string_view name, Ref use, int element,
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
  if (is_full() && element < 0) keep_wrapper(module, found);
  follow_field(owner, name, element, depth);
  if (found.empty()) follow_getter(owner, name, element, depth);
}

namespace {

// x for field(default=x) and field(default_factory=lambda: x) of a data class.
NodeId default_of_field(const Module& module, NodeId value) {
  const Call* call = value == kNoNode ? nullptr : module.call_at(value);
  if (call == nullptr || (call->name != "field" && call->name != "Field")) return value;
  if (const NodeId given = module.keyword(value, "default"); given != kNoNode) return given;
  const NodeId factory = module.keyword(value, "default_factory");
  return factory != kNoNode && module[factory].kind == Kind::lambda
             ? module.tree().child(factory, Field::body)
             : value;
}

}  // namespace

// name = value in the class body; of a data class, what its objects are made with.
void Resolver::follow_field(ClassRef owner, std::string_view name, int element, int depth) {
  const Module& module = *owner.module;
  std::size_t index = 0;
  bool is_field = false;
  for (const std::uint32_t each : module.defs_of(name, false)) {
    const Def& def = module.defs()[each];
    if (def.scope != owner.cls->node || def.kind != DefKind::assign) continue;
    const NodeId value = default_of_field(module, def.value);
    if (value == def.value)
      follow_def(module, def, element, depth);
    else
      follow({&module, value}, element, depth + 1);
    is_field = is_annotated(module, def);
    index = fields_above(module, def);
  }
  if (!is_field || program_.method(owner, "__init__")) return;
  for (const CallRef& made : program_.calls_named(owner.cls->name))
    if (program_.class_of_call(made) == owner)
      if (const Ref value = made.argument(index, name)) follow(value, element, depth + 1);
}

// What a @property returns.
void Resolver::follow_getter(ClassRef owner, std::string_view name, int element, int depth) {
  const Function* getter = owner.module->method(*owner.cls, name);
  if (getter == nullptr || !program_.is_property({owner.module, getter})) return;
  for (const NodeId value : getter->returns) follow({owner.module, value}, element, depth + 1);
}

namespace {

// In the function of the use, and control does not come from the one to the other.
bool is_below(const Module& module, const Def& def, Ref use) {
  return &module == use.module && module.function_of(def.target) == module.function_of(use.node) &&
         !reaches(module, def, use.node);
}

}  // namespace

// args.gpu = ..., cfg.batch_size = ... of an object with that name.
bool Resolver::follow_named(Ref object, std::string_view name, Ref use, int element, int depth) {
  const std::string_view object_text = object.text();
  const std::string_view alias = alias_of(object);
  bool found = false;
  for (const auto& [module, def, owner] : program_.attribute_defs(name)) {
    if (def->kind == DefKind::augmented) continue;
    if (owner != object_text && (alias.empty() || owner != alias)) continue;
    if (is_below(*module, *def, use)) continue;
    follow_def(*module, *def, element, depth);
    found = true;
  }
  return found;
}

// opts.lead after keep(args), where another function has set args.lead.
void Resolver::follow_renamed(Ref object, std::string_view name, Ref use, int element, int depth) {
  constexpr int kMostDefinitions = 8;
  const auto names = names_of(program_, object);
  const auto is_one_of = [](const auto& all, std::string_view each) {
    return std::find(all.begin(), all.end(), each) != all.end();
  };
  int looked_at = 0;
  for (const auto& [module, def, owner] : program_.attribute_defs(name)) {
    if (def->kind == DefKind::augmented || owner == "self" || is_below(*module, *def, use))
      continue;
    if (++looked_at > kMostDefinitions) return;
    const auto others = names_of(program_, Ref{module, def->target}.child(Field::object));
    if (std::any_of(others.begin(), others.end(),
                    [&](std::string_view other) { return is_one_of(names, other); }))
      follow_def(*module, *def, element, depth);
  }
}

// Of an object of a local class, of a namespace made in the program, an argparse option.
void Resolver::follow_namespace(Ref object, std::string_view name, Ref use, int element,
                                int depth) {
  if (follow_named(object, name, use, element, depth)) return;
  const std::size_t before = out.size();
  if (const ClassRef owner = program_.class_of(object))
    follow_class_attribute(owner, name, use, element, depth);
  if (out.size() == before) follow_renamed(object, name, use, element, depth);
  if (out.size() > before) return;
  for (const Source& source : program_.sources(object))
    if (const CallRef made = program_.as_call(source.ref)) {
      if (makes_namespace(made.call->name))
        follow_item(source.ref, std::string(name), depth);
      else
        follow_named_tuple(source.ref, name, depth);
    }
  if (out.size() > before) return;
  for (const CallRef& call : program_.options_named(name))
    emit(call.ref(), element, Source::How::argument);
}

}  // namespace bench::diagnose
