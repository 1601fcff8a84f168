// What stands for an object, and under which names objects hold others.
#include "diagnose/model/program.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

// Calls that make an object with fields, or a class of such objects.
constexpr std::string_view kMakers[] = {"SimpleNamespace", "Namespace", "namedtuple",
                                        "EasyDict",        "edict",     "AttrDict",
                                        "Munch",           "DotMap",    "Box"};

bool has_in_class(const Module& module, const HashedName& name) {
  const auto& defs = module.defs_of(name, false);
  return std::any_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
    const NodeId scope = module.defs()[index].scope;
    return scope != 0 && module[scope].kind == Kind::class_definition;
  });
}

}  // namespace

bool stands_for_object(Ref expression) {
  const Kind kind = expression.kind();
  if (kind == Kind::identifier || kind == Kind::attribute) return true;
  if (kind != Kind::subscript) return false;
  const SyntaxTree& tree = expression.module->tree();
  return tree.string_value(tree.child(expression.node, Field::subscript)).has_value();
}

bool makes_carrier(std::string_view name) {
  return name == "dict" || name == "OrderedDict" ||
         std::find(std::begin(kMakers), std::end(kMakers), name) != std::end(kMakers);
}

bool Program::is_field(std::string_view name) const {
  if (const auto known = fields_.find(name); known != fields_.end()) return known->second;
  return fields_.emplace(name, finds_field(name)).first->second;
}

// By trainer.net = net,
// a field of a class, a keyword of SimpleNamespace(...).
bool Program::finds_field(std::string_view name) const {
  if (!attribute_defs(name).empty()) return true;
  const HashedName hashed(name);
  for (const Module* module : modules())
    if (has_in_class(*module, hashed)) return true;
  for (const std::string_view maker : kMakers)
    for (const CallRef& call : calls_named(maker))
      if (maker == "namedtuple" || call.keyword(name)) return true;
  return false;
}

bool Program::leads_to(Ref expression, Ref variable) const {
  if (same_variable(expression, variable)) return true;
  const auto names = names_behind(expression);
  return std::any_of(names.begin(), names.end(),
                     [&](Ref name) { return same_variable(name, variable); });
}

}  // namespace bench::diagnose
