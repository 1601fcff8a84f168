#include "scenarios/pitfalls/wrappers/empty_modules.hpp"

#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <array>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::ClassRef;
using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;

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
  static constexpr std::array<std::string_view, 9> kAdding = {
      "setattr",  "register_buffer", "register_parameter", "add_module", "register_module",
      "__dict__", "_modules",        "_parameters",        "_buffers"};
  const std::string_view text = tree.text(cls.cls->node);
  return assigns || std::any_of(kAdding.begin(), kAdding.end(),
                                [&](std::string_view word) { return facts::contains(text, word); });
}

// super().__init__(), alone or below a docstring.
bool only_calls_super(const ClassRef& cls, const diagnose::Function& function) {
  const auto& tree = cls.module->tree();
  for (NodeId at = tree[function.body].first_child; at != kNoNode; at = tree[at].next_sibling) {
    const NodeId inner = tree[at].first_child;
    const std::string_view text = tree.text(at);
    if (tree[at].kind != Kind::expression_statement || inner == kNoNode ||
        (tree[inner].kind != Kind::string &&
         !(text.starts_with("super(") && facts::contains(text, ").__init__("))))
      return false;
  }
  return true;
}

// Other methods, and whoever is given the object itself, may fill it.
bool may_be_filled(const ClassRef& cls) {
  const auto& tree = cls.module->tree();
  for (const diagnose::Function& function : cls.module->functions())
    if (tree.contains(cls.cls->node, function.node) && function.name != "forward" &&
        !(function.name == "__init__" && only_calls_super(cls, function)))
      return true;
  for (NodeId at = cls.cls->node; at < tree[cls.cls->node].last; ++at) {
    if (tree[at].kind != Kind::identifier || tree.text(at) != "self") continue;
    const NodeId parent = tree[at].parent;
    const bool is_of_super = tree.text(tree[parent].parent).starts_with("super(");
    if (tree[parent].kind != Kind::attribute && tree[parent].kind != Kind::parameters &&
        !is_of_super)
      return true;
  }
  return false;
}

// net.head = Linear(8, 2), of the object that is wrapped.
bool is_filled_from_outside(const Program& program, const diagnose::Wrap& wrap) {
  const auto& modules = program.modules();
  return std::any_of(modules.begin(), modules.end(), [&](const diagnose::Module* module) {
    return std::any_of(module->defs().begin(), module->defs().end(), [&](const auto& def) {
      return def.is_attribute &&
             Ref{module, def.target}.child(Field::object).text() == wrap.module.text();
    });
  });
}

bool is_empty(const Program& program, const ClassRef& cls) {
  const auto& lineage = program.lineage(cls);
  return std::all_of(lineage.begin(), lineage.end(), [&](const ClassRef& each) {
    return has_known_bases(program, each) && !keeps_something(each) && !may_be_filled(each);
  });
}

}  // namespace

bool has_no_state(const Program& program, const diagnose::Wrap& wrap) {
  return !wrap.classes.empty() && !is_filled_from_outside(program, wrap) &&
         std::all_of(wrap.classes.begin(), wrap.classes.end(),
                     [&](const ClassRef& cls) { return is_empty(program, cls); }) &&
         program.class_of(wrap.module) == wrap.classes.front();
}

}  // namespace bench::pitfalls
