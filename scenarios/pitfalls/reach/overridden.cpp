#include "scenarios/pitfalls/reach/overridden.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace bench::pitfalls::facts {

using diagnose::ClassRef;
using diagnose::FunctionRef;

namespace {

bool is_made_by_name(const Program& program, ClassRef cls) {
  return !program.calls_named(cls.cls->name).empty() || !program.handed_on(cls).empty();
}

// super().load(path) and Base.load(self, path).
bool is_called_by_derived(const Program& program, FunctionRef method, ClassRef owner) {
  const auto calls = program.calls_named(method.function->name);
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    const std::string_view object = call.receiver().text();
    return object.starts_with("super(") || object == owner.cls->name;
  });
}

}  // namespace

bool is_overridden_everywhere(const Program& program, FunctionRef method, ClassRef owner) {
  if (!owner || !method || method.function->name == "__init__" || is_made_by_name(program, owner))
    return false;
  std::vector<ClassRef> made;
  for (const ClassRef& derived : program.derived_of(owner))
    if (is_made_by_name(program, derived)) made.push_back(derived);
  return !made.empty() && std::all_of(made.begin(), made.end(), [&](ClassRef cls) {
    const FunctionRef own = program.method(cls, method.function->name);
    return own && own != method;
  }) && !is_called_by_derived(program, method, owner);
}

bool is_replaced_below(FunctionRef function) {
  const auto& module = *function.module;
  const auto& tree = module.tree();
  const auto block = tree[function.function->node].parent;
  // A decorator may keep the function elsewhere: @property, @overload, @app.route(...).
  if (block == diagnose::kNoNode || tree[block].kind == diagnose::Kind::decorated) return false;
  const auto& all = module.functions();
  return std::any_of(all.begin(), all.end(), [&](const diagnose::Function& other) {
    return other.node > function.function->node && other.name == function.function->name &&
           tree[other.node].parent == block;
  });
}

}  // namespace bench::pitfalls::facts
