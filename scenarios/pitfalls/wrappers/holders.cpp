#include "scenarios/pitfalls/wrappers/holders.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;

namespace {

// torch.cuda, nn: a name of torch's that the file gives nothing else.
bool is_of_torch(Ref name) {
  const std::string_view path = name.module->import_path(name.text());
  if (path != "torch" && !path.starts_with("torch.")) return false;
  const auto defs = name.module->defs_of(name.text(), false);
  return std::all_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
    return name.module->defs()[index].kind == diagnose::DefKind::import;
  });
}

}  // namespace

bool may_hold_wrapper(Ref object) {
  Ref first = object;
  while (first.kind() == Kind::attribute) first = first.child(Field::object);
  if (first.kind() == Kind::identifier && (object.text() == "self" || is_of_torch(first)))
    return false;
  return object.kind() == Kind::identifier || object.kind() == Kind::attribute ||
         object.kind() == Kind::subscript;
}

bool is_name_or_kept(Ref object) {
  return object.kind() == Kind::identifier ||
         (object.kind() == Kind::attribute &&
          object.child(Field::object).kind() == Kind::identifier);
}

}  // namespace bench::pitfalls
