#include "diagnose/model/object_names.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

constexpr std::size_t kMaxNames = 8;

void add(std::vector<Ref>& out, Ref value) {
  if (!stands_for_object(value)) return;
  const bool known = std::any_of(out.begin(), out.end(), [&](Ref at) {
    return at.module == value.module && at.text() == value.text();
  });
  if (!known && out.size() < kMaxNames) out.push_back(value);
}

// What the calls of a function pass as its parameter.
void add_arguments(const Program& program, const Module& module, const Def& parameter,
                   std::vector<Ref>& out) {
  const Function* function = module.function_at(parameter.scope);
  if (function == nullptr) return;
  const bool is_method = function->owner_class != kNoNode;
  std::size_t index = 0;
  while (index < function->parameters.size() && function->parameters[index].name != parameter.name)
    ++index;
  if (is_method && index == 0) return;
  for (const CallRef& site : program.call_sites({&module, function}))
    if (const Ref value = site.argument(is_method ? index - 1 : index, parameter.name))
      add(out, value);
}

// Names that stand alone on the right of what defines the name in its own function.
void add_behind_name(const Program& program, Ref name, std::vector<Ref>& out) {
  const Module& module = *name.module;
  for (const std::uint32_t index : module.defs_of(name.text(), false)) {
    const Def& def = module.defs()[index];
    if (module.function_of(def.target) != module.function_of(name.node)) continue;
    if (def.kind == DefKind::parameter) add_arguments(program, module, def, out);
    if (def.kind == DefKind::assign && def.element < 0) add(out, name.with(def.value));
  }
}

// self.args = args in the class that uses self.args.
void add_behind_attribute(const Program& program, Ref attribute, std::vector<Ref>& out) {
  if (attribute.child(Field::object).text() != "self") return;
  const Module& module = *attribute.module;
  const ClassRef owner = program.enclosing_class(attribute);
  for (const std::uint32_t index : module.defs_of(attribute.child(Field::attribute).text(), true)) {
    const Def& def = module.defs()[index];
    if (def.kind == DefKind::assign && def.element < 0 &&
        program.enclosing_class(attribute.with(def.target)) == owner)
      add(out, attribute.with(def.value));
  }
}

}  // namespace

std::vector<std::string_view> names_of(const Program& program, Ref object) {
  std::vector<Ref> found;
  add(found, object);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Ref at = found[i];
    if (at.kind() == Kind::identifier)
      add_behind_name(program, at, found);
    else
      add_behind_attribute(program, at, found);
  }
  std::vector<std::string_view> names;
  for (const Ref at : found)
    if (at.text() != "self") names.push_back(at.text());
  return names;
}

}  // namespace bench::diagnose
