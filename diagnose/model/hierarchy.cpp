// Classes of a program and what they inherit from each other.
#include "diagnose/model/program.hpp"

namespace bench::diagnose {
namespace {

constexpr int kBaseDepth = 6;

}  // namespace

ClassRef Program::base_of(ClassRef derived) const {
  if (!derived) return {};
  for (const NodeId node : derived.cls->bases)
    for (const Source& source : sources({derived.module, node}))
      if (source.ref.kind() == Kind::class_definition)
        return {source.ref.module, source.ref.module->class_at(source.ref.node)};
  return {};
}

FunctionRef Program::method(ClassRef owner, std::string_view name) const {
  for (int level = 0; owner && level < kBaseDepth; ++level) {
    if (const Function* found = owner.module->method(*owner.cls, name))
      return {owner.module, found};
    owner = base_of(owner);
  }
  return {};
}

bool Program::derives_from(ClassRef derived, Api wanted) const {
  for (int level = 0; derived && level < kBaseDepth; ++level) {
    ClassRef next;
    for (const NodeId node : derived.cls->bases) {
      if (derived.module->api(node) == wanted) return true;
      for (const Source& source : sources({derived.module, node}))
        if (source.ref.kind() == Kind::class_definition && !next)
          next = {source.ref.module, source.ref.module->class_at(source.ref.node)};
    }
    derived = next;
  }
  return false;
}

}  // namespace bench::diagnose
