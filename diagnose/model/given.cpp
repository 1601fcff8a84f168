// Whether the program gives a value to a name at all: a cheap question before the one for the value
// itself, which most calls of functions and methods answer with no.
#include "diagnose/model/program.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

bool is_definition(DefKind kind) {
  return kind == DefKind::function || kind == DefKind::class_definition;
}

// x = value in the body of a class.
bool is_set_in_class(const Module& module, const HashedName& name) {
  const auto& defs = module.defs_of(name, false);
  return std::any_of(defs.begin(), defs.end(), [&](const std::uint32_t index) {
    const Def& def = module.defs()[index];
    return !is_definition(def.kind) && def.scope != 0 &&
           module[def.scope].kind == Kind::class_definition;
  });
}

// The names that a literal holds, those of "mo" "del" as well, perhaps one for several.
bool spells(Ref fields, std::string_view name) {
  std::string text(fields.text());
  std::erase_if(text, [](char c) {
    return std::string_view("\"' \n\t\\").find(c) != std::string_view::npos;
  });
  return text.find(name) != std::string::npos;
}

// SimpleNamespace(model=net), EasyDict(parts), State(net) of a namedtuple.
bool is_made_with(const Program& program, std::string_view name) {
  for (const std::string_view maker :
       {"SimpleNamespace", "Namespace", "EasyDict", "edict", "AttrDict", "Munch", "DotMap", "Box"})
    for (const CallRef& call : program.calls_named(maker)) {
      const std::string_view kept = program.assigned_name(call.ref());
      if (call.keyword(name) || call.positional(0) || call.has_splat() ||
          (!kept.empty() && !call.module->item_defs_of(kept).empty()))
        return true;
    }
  const auto tuples = program.calls_named("namedtuple");
  return std::any_of(tuples.begin(), tuples.end(), [&](const CallRef& type) {
    const Ref fields = type.argument(1, "field_names");
    return fields && (spells(fields, name) || fields.kind() == Kind::identifier ||
                      fields.kind() == Kind::attribute);
  });
}

}  // namespace

bool Module::is_only_defined(std::string_view name) const {
  if (!import_path(name).empty() || has_star_imports()) return false;
  const auto& indices = defs_of(name, false);
  return std::all_of(indices.begin(), indices.end(),
                     [&](const std::uint32_t index) { return is_definition(defs_[index].kind); });
}

bool Program::finds_attribute_given(std::string_view name) const {
  if (!attribute_defs(name).empty()) return true;
  if (const auto named = functions_by_name_.find(name); named != functions_by_name_.end())
    if (std::any_of(named->second.begin(), named->second.end(),
                    [&](FunctionRef function) { return is_property(function); }))
      return true;
  const HashedName hashed(name);
  return std::any_of(modules().begin(), modules().end(),
                     [&](const Module* module) { return is_set_in_class(*module, hashed); }) ||
         is_made_with(*this, name);
}

bool Program::may_be_given(Ref expression) const {
  if (expression.kind() == Kind::identifier)
    return !expression.module->is_only_defined(expression.text());
  if (expression.kind() != Kind::attribute || !qualified(expression).empty()) return true;
  const std::string_view name = expression.child(Field::attribute).text();
  if (const auto known = given_.find(name); known != given_.end()) return known->second;
  return given_.emplace(name, finds_attribute_given(name)).first->second;
}

}  // namespace bench::diagnose
