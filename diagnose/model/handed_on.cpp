// Where the program hands a function or a class on instead of calling it: Process(target=work),
// fire.Fire(train), {"cifar10": make_cifar10}. All rules ask here; the places are found once.
#include "diagnose/model/program.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

// The identifier stands for the value of its name: no call of it, no definition.
bool is_value(const SyntaxTree& tree, NodeId id) {
  const NodeId at = tree[id].field == Field::attribute ? tree[id].parent : id;
  const Field field = tree[at].field;
  return field != Field::function && field != Field::name && field != Field::left &&
         field != Field::object;
}

// A parameter or a variable of a function around the place has the name: def log(save=None): the
// function of the module is not meant.
bool is_hidden(const Module& module, NodeId id, std::string_view name) {
  if (module.tree().ancestor(id, Kind::default_parameter) != kNoNode) return false;
  const auto& indices = module.defs_of(name, false);
  for (NodeId scope = module.scope_of(id); scope != 0; scope = module.scope_of(scope))
    for (const std::uint32_t index : indices) {
      const Def& def = module.defs()[index];
      if (def.scope == scope && module[scope].kind == Kind::function &&
          (def.kind == DefKind::parameter || def.kind == DefKind::assign ||
           def.kind == DefKind::loop))
        return true;
    }
  return false;
}

// helpers for helpers.work, where that is an import; empty otherwise.
std::string program_path(const Module& module, Ref member) {
  return module.qualified(member.child(Field::object).node);
}

// A class in isinstance(x, Net), in bases or in an annotation is not there to be made.
bool may_be_made(Ref place) {
  const SyntaxTree& tree = place.module->tree();
  const NodeId parent = tree[place.node].parent;
  switch (tree[parent].kind) {
    case Kind::argument_list:
      return tree[parent].field != Field::superclasses &&
             !tree.text(tree[parent].parent).starts_with("is");  // isinstance, issubclass
    case Kind::keyword_argument:
    case Kind::assignment:
    case Kind::pair:
    case Kind::list:
    case Kind::tuple:
    case Kind::return_statement:
    case Kind::conditional:
    case Kind::boolean:
    case Kind::default_parameter:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::span<const std::uint32_t> Module::values_named(const HashedName& name) const {
  const NameIndex& values = values_.get([&] {
    NameIndex out;
    for (NodeId id = 0; id < tree_.size(); ++id) {
      if (tree_[id].kind == Kind::import_from)
        id = tree_[id].last - 1;  // on to what follows it: what it imports is no value here
      else if (tree_[id].kind == Kind::identifier && is_value(tree_, id))
        out.add(tree_.text(id), id);
    }
    out.finish();
    return out;
  });
  return values.of(name);
}

const std::vector<Ref>& Program::values_named(std::string_view name) const {
  const auto [known, is_new] = values_.try_emplace(name);
  if (!is_new) return known->second;
  const HashedName hashed(name);
  for (const Module* module : modules())
    for (const NodeId id : module->values_named(hashed)) known->second.push_back({module, id});
  return known->second;
}

std::vector<Ref> Program::values_of(std::string_view name, const Module& home, NodeId definition,
                                    bool is_method) const {
  std::vector<Ref> out;
  if (!functions_by_name_.contains(name)) return out;
  for (const Ref& place : values_named(name)) {
    const SyntaxTree& tree = place.module->tree();
    const bool is_member = tree[place.node].field == Field::attribute;
    if (is_member && !is_method) {  // Process(target=helpers.work)
      const Ref whole = place.with(tree[place.node].parent);
      const std::string file = program_path(*place.module, whole);
      if (!file.empty() && import_target(*place.module, file) == &home) out.push_back(whole);
      continue;
    }
    if (is_member != is_method) continue;
    if (place.module == &home ? tree.contains(definition, place.node)
                              : is_method || (place.module->import_path(name).empty() &&
                                              !place.module->has_star_imports()))
      continue;
    if (!is_method && is_hidden(*place.module, place.node, name)) continue;
    out.push_back(place);
  }
  return out;
}

std::vector<Ref> Program::handed_on(FunctionRef function) const {
  return values_of(function.function->name, *function.module, function.function->node,
                   function.function->owner_class != kNoNode);
}

Ref whole_value(Ref place) {
  const SyntaxTree& tree = place.module->tree();
  return tree[place.node].field == Field::attribute ? place.with(tree[place.node].parent) : place;
}

bool Program::runs_in_ranks(FunctionRef function) const {
  if (!function || is_spawned(function)) return static_cast<bool>(function);
  const auto places = handed_on(function);
  return std::any_of(places.begin(), places.end(), [&](Ref name) {
    const Ref place = whole_value(name);
    const SyntaxTree& tree = place.module->tree();
    if (tree[tree[place.node].parent].kind != Kind::tuple) return false;
    const CallRef starter = as_call(place.with(tree.ancestor(place.node, Kind::call)));
    return starter && (starter.call->api == Api::spawn || starter.call->name == "Process");
  });
}

std::vector<Ref> Program::handed_on(ClassRef cls) const {
  std::vector<Ref> out = values_of(cls.cls->name, *cls.module, cls.cls->node, false);
  std::erase_if(out, [](Ref place) { return !may_be_made(place); });
  return out;
}

}  // namespace bench::diagnose
