#include "scenarios/pitfalls/wrappers/without_parameters.hpp"

#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <cctype>

namespace bench::pitfalls {

using diagnose::ClassRef;
using diagnose::Field;
using diagnose::Kind;
using diagnose::NodeId;

namespace {

constexpr int kParts = 4;  // modules within modules

bool is_free(const Program& program, ClassRef cls, int depth);

// torch.FloatTensor(values), torch.from_numpy(window): no part of a module.
bool makes_values(std::string_view path) {
  return (path.starts_with("torch.") && !path.starts_with("torch.nn.")) ||
         path.starts_with("torch.nn.functional.") || path.starts_with("numpy.");
}

// self.register_buffer(...), self.scale(x) of the class, and self.window(x) of a part without any.
bool is_call_on_self(const Program& program, ClassRef cls, Ref called, int depth) {
  const Ref object = called.child(Field::object);
  const std::string_view name = called.child(Field::attribute).text();
  if (object.text() == "self" && (name == "register_buffer" || program.method(cls, name)))
    return true;
  const Ref part = object.text() == "self" ? called : object;
  return is_free(program, program.class_of(part), depth + 1);
}

// The call gives the class no parameter.
bool adds_nothing(const Program& program, ClassRef cls, const CallRef& call, int depth) {
  const std::string_view name = call.call->name;
  if (name.empty() || call.call->path.starts_with("torch.nn.init.")) return false;
  if (makes_values(call.call->path)) return true;
  if (call.call->path.starts_with("torch.nn.") ||
      says_any(name, {"parameter", "module", "load", "pretrained", "model"}))
    return false;
  if (const ClassRef part = program.class_of_call(call)) return is_free(program, part, depth + 1);
  const Ref called{call.module, call.call->function};
  if (called.kind() == Kind::attribute && called.text().starts_with("self."))
    return is_call_on_self(program, cls, called, depth);
  return std::isupper(static_cast<unsigned char>(name.front())) == 0;
}

bool is_free(const Program& program, ClassRef cls, int depth) {
  if (!cls || depth > kParts) return false;
  const auto bases = program.bases_of(cls);
  std::size_t known = bases.size();
  for (const NodeId base : cls.cls->bases)
    if (cls.module->qualified(base) == "torch.nn.Module") ++known;
  if (known == 0 || known != cls.cls->bases.size() ||
      !std::all_of(bases.begin(), bases.end(),
                   [&](const ClassRef& base) { return is_free(program, base, depth + 1); }))
    return false;
  const auto& tree = cls.module->tree();
  const auto& calls = cls.module->calls();
  return std::all_of(calls.begin(), calls.end(), [&](const diagnose::Call& call) {
    return !tree.contains(cls.cls->node, call.node) ||
           adds_nothing(program, cls, {cls.module, &call}, depth);
  });
}

}  // namespace

bool has_no_parameters(const Program& program, ClassRef cls) { return is_free(program, cls, 0); }

}  // namespace bench::pitfalls
