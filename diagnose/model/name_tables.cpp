#include "diagnose/model/name_tables.hpp"

#include <algorithm>

namespace bench::diagnose {

const std::vector<AttributeDef>& NameTables::attribute_defs(
    const std::vector<const Module*>& modules, std::string_view name) {
  if (const auto known = attributes_.find(name); known != attributes_.end()) return known->second;
  std::vector<AttributeDef> found;
  const HashedName hashed(name);
  for (const Module* module : modules)
    for (const std::uint32_t index : module->defs_of(hashed, true)) {
      const Def& def = module->defs()[index];
      const NodeId object = module->tree().child(def.target, Field::object);
      found.push_back({module, &def, module->text(object)});
    }
  return attributes_.emplace(name, std::move(found)).first->second;
}

bool NameTables::mentions(const std::vector<const Module*>& modules, std::string_view word) {
  if (const auto known = mentioned_.find(word); known != mentioned_.end()) return known->second;
  const bool found = std::any_of(modules.begin(), modules.end(),
                                 [&](const Module* module) { return module->mentions(word); });
  mentioned_.emplace(word, found);
  return found;
}

}  // namespace bench::diagnose
