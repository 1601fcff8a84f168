// Classes of a program and what they inherit from each other. An object of a derived class runs the
// methods of its bases, so a base sees attributes and methods of the classes derived from it too.
#include "diagnose/model/program.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

constexpr std::size_t kMaxLineage = 12;
constexpr std::size_t kMaxDerived = 16;  // that a base is read together with

// The body says nothing but pass, ... or raise NotImplementedError: a derived class has the method.
bool is_abstract(FunctionRef function) {
  const SyntaxTree& tree = function.module->tree();
  for (NodeId at = tree[function.function->body].first_child; at != kNoNode;
       at = tree[at].next_sibling) {
    const std::string_view text = tree.text(at);
    const bool is_string = tree[at].kind == Kind::expression_statement &&
                           tree[tree[at].first_child].kind == Kind::string;
    if (!is_string && text != "pass" && text != "..." &&
        !text.starts_with("raise NotImplementedError"))
      return false;
  }
  return true;
}

}  // namespace

std::vector<ClassRef> Program::bases_of(ClassRef derived) const {
  std::vector<ClassRef> out;
  for (const NodeId node : derived.cls->bases)
    for (const Source& source : sources({derived.module, node}))
      if (source.ref.kind() == Kind::class_definition) {
        out.push_back({source.ref.module, source.ref.module->class_at(source.ref.node)});
        break;
      }
  return out;
}

ClassRef Program::base_of(ClassRef derived) const {
  if (!derived) return {};
  const std::vector<ClassRef> bases = bases_of(derived);
  return bases.empty() ? ClassRef{} : bases.front();
}

const std::vector<ClassRef>& Program::lineage(ClassRef cls) const {
  const auto known = lineages_.find(cls.cls);
  if (known != lineages_.end()) return known->second;
  lineages_[cls.cls] = {cls};  // what asks again meanwhile sees the class alone
  std::vector<ClassRef> line{cls};
  for (std::size_t i = 0; i < line.size() && line.size() < kMaxLineage; ++i)
    for (const ClassRef& base : bases_of(line[i]))
      if (std::find(line.begin(), line.end(), base) == line.end()) line.push_back(base);
  return lineages_[cls.cls] = std::move(line);
}

void Program::index_derived() const {
  if (derived_known_) return;
  derived_known_ = true;
  for (const Module* module : modules())
    for (const Class& cls : module->classes()) {
      if (cls.bases.empty()) continue;
      const ClassRef derived{module, &cls};
      for (const ClassRef& base : lineage(derived))
        if (!(base == derived)) derived_[base.cls].push_back(derived);
    }
}

const std::vector<ClassRef>& Program::derived_of(ClassRef base) const {
  static const std::vector<ClassRef> kNone;
  index_derived();
  const auto found = derived_.find(base.cls);
  return found == derived_.end() ? kNone : found->second;
}

std::vector<ClassRef> Program::derived_in_use(ClassRef base) const {
  std::vector<ClassRef> all = derived_of(base);
  std::vector<ClassRef> made;
  for (const ClassRef& derived : all)
    if (made.size() < kMaxDerived && !calls_named(derived.cls->name).empty())
      made.push_back(derived);
  if (!made.empty()) return made;
  if (all.size() > kMaxDerived) all.resize(kMaxDerived);
  return all;
}

FunctionRef Program::method(ClassRef owner, std::string_view name) const {
  if (!owner) return {};
  if (const Function* own = owner.module->method(*owner.cls, name)) return {owner.module, own};
  return inherited_method(owner, name);
}

FunctionRef Program::inherited_method(ClassRef owner, std::string_view name) const {
  if (!owner) return {};
  for (const ClassRef& cls : lineage(owner))
    if (!(cls == owner))
      if (const Function* found = cls.module->method(*cls.cls, name)) return {cls.module, found};
  return {};
}

FunctionRef Program::method_on_self(ClassRef owner, std::string_view name) const {
  const FunctionRef own = method(owner, name);
  if (!owner || (own && !is_abstract(own))) return own;
  std::vector<FunctionRef> overriding;
  for (const ClassRef& derived : derived_in_use(owner)) {
    const FunctionRef found = method(derived, name);
    if (found && !(found == own) &&
        std::find(overriding.begin(), overriding.end(), found) == overriding.end())
      overriding.push_back(found);
  }
  return overriding.size() == 1 ? overriding.front() : own;
}

bool Program::overrides(FunctionRef function, ClassRef base) const {
  if (!base || function.function->owner_class == kNoNode) return false;
  const ClassRef owner{function.module, function.module->class_at(function.function->owner_class)};
  if (owner == base) return false;
  const std::vector<ClassRef>& line = lineage(owner);
  return std::find(line.begin(), line.end(), base) != line.end();
}

bool Program::derives_from(ClassRef derived, Api wanted) const {
  if (!derived) return false;
  for (const ClassRef& cls : lineage(derived))
    if (const auto& apis = cls.cls->base_apis;
        std::find(apis.begin(), apis.end(), wanted) != apis.end())
      return true;
  return false;
}

}  // namespace bench::diagnose
