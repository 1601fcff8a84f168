#include "scenarios/pitfalls/wrappers/empty_modules.hpp"

#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <array>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::ClassRef;

namespace {

// A base that is neither of this program nor nn.Module may bring layers along.
bool has_known_bases(const Program& program, const ClassRef& cls) {
  const auto& apis = cls.cls->base_apis;
  const auto others =
      std::count_if(apis.begin(), apis.end(), [](Api api) { return api != Api::module_class; });
  return static_cast<std::size_t>(others) == program.bases_of(cls).size();
}

// self.scale = 2 keeps a number; whatever a call makes may be a layer, and so may what is handed
// in.
bool keeps_something(const ClassRef& cls) {
  const auto& tree = cls.module->tree();
  const auto& defs = cls.module->defs();
  const bool assigns = std::any_of(defs.begin(), defs.end(), [&](const diagnose::Def& def) {
    return def.is_attribute && tree.contains(cls.cls->node, def.target);
  });
  static constexpr std::array<std::string_view, 6> kAdding = {
      "setattr",    "register_buffer", "register_parameter",
      "add_module", "register_module", "__dict__"};
  const std::string_view text = tree.text(cls.cls->node);
  return assigns || std::any_of(kAdding.begin(), kAdding.end(),
                                [&](std::string_view word) { return facts::contains(text, word); });
}

bool is_empty(const Program& program, const ClassRef& cls) {
  const auto& lineage = program.lineage(cls);
  return std::all_of(lineage.begin(), lineage.end(), [&](const ClassRef& each) {
    return has_known_bases(program, each) && !keeps_something(each);
  });
}

}  // namespace

bool has_no_state(const Program& program, const diagnose::Wrap& wrap) {
  return !wrap.classes.empty() &&
         std::all_of(wrap.classes.begin(), wrap.classes.end(),
                     [&](const ClassRef& cls) { return is_empty(program, cls); }) &&
         program.class_of(wrap.module) == wrap.classes.front();
}

}  // namespace bench::pitfalls
