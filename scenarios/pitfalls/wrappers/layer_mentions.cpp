#include "scenarios/pitfalls/wrappers/layer_mentions.hpp"

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

namespace bench::pitfalls {

using diagnose::ClassRef;
using diagnose::Field;
using diagnose::Kind;
using diagnose::Module;
using diagnose::NodeId;

namespace {

bool is_of_name(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

// The name as a whole word; not as a part of another one, as norm in convert_sync_batchnorm.
bool has_word(std::string_view text, std::string_view name) {
  for (std::size_t at = text.find(name); at != std::string_view::npos;
       at = text.find(name, at + 1)) {
    const char before = at > 0 ? text[at - 1] : ' ';
    const char after = at + name.size() < text.size() ? text[at + name.size()] : ' ';
    if (!is_of_name(before) && !is_of_name(after)) return true;
  }
  return false;
}

// The class, what it inherits from, what derives from it, and what that inherits from beside it: a
// method of any of them has the layer in its self.
std::vector<ClassRef> kin_of(const Program& program, ClassRef cls) {
  std::vector<ClassRef> out = program.lineage(cls);
  for (const ClassRef& base : program.lineage(cls))
    for (const ClassRef& derived : program.derived_of(base)) {
      const auto& lineage = program.lineage(derived);
      out.insert(out.end(), lineage.begin(), lineage.end());
    }
  return out;
}

// A text that nothing reads: a docstring, a line that is commented out by quotes.
bool is_idle_text(Ref string) {
  const auto& tree = string.module->tree();
  return tree[tree[string.node].parent].kind == Kind::expression_statement;
}

// self.NAME in a class that gives itself something of that name.
bool is_of_another(const Program& program, const std::vector<ClassRef>& kin, Ref name) {
  const auto& tree = name.module->tree();
  const Ref object = name.with(tree[name.node].parent).child(Field::object);
  const ClassRef owner = program.enclosing_class(name);
  if (object.text() != "self" || !owner || std::find(kin.begin(), kin.end(), owner) != kin.end())
    return false;
  const std::string attribute = "self." + std::string(name.text());
  const auto& defs = name.module->defs();
  if (std::none_of(defs.begin(), defs.end(), [&](const diagnose::Def& def) {
        return def.is_attribute && name.module->text(def.target) == attribute &&
               program.enclosing_class(name.with(def.target)) == owner;
      }))
    return false;
  // Methods that other classes borrow: Owner.forward(self, x).
  const std::string borrowed = std::string(owner.cls->name) + ".";
  const auto& modules = program.modules();
  return std::none_of(modules.begin(), modules.end(), [&](const Module* module) {
    return module->tree().source().find(borrowed) != std::string_view::npos;
  });
}

}  // namespace

bool is_mentioned_again(const Program& program, ClassRef cls, Ref definition) {
  const std::string_view name = definition.child(Field::attribute).text();
  const auto& own = definition.module->tree();  // self.stem = stem = nn.Conv2d(...)
  const NodeId line = own[definition.node].parent;
  if (own[own[line].parent].kind == Kind::assignment ||
      definition.with(line).child(Field::right).kind() == Kind::assignment ||
      program.mentions("MethodType") || program.mentions("__class__"))
    return true;
  const std::vector<ClassRef> kin = kin_of(program, cls);
  for (const Module* module : program.modules()) {
    const auto& tree = module->tree();
    if (!has_word(tree.source(), name)) continue;
    for (NodeId at = 0; at < tree.size(); ++at) {
      const Ref node{module, at};
      const Kind kind = tree[at].kind;
      if (module == definition.module && tree.contains(definition.node, at)) continue;
      if (kind == Kind::string && has_word(tree.text(at), name) && !is_idle_text(node)) return true;
      if (kind == Kind::identifier && tree[at].field == Field::attribute && tree.text(at) == name &&
          !is_of_another(program, kin, node))
        return true;
    }
  }
  return false;
}

}  // namespace bench::pitfalls
