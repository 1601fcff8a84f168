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
  if (!owner || !method || method.function->makes_object() || is_made_by_name(program, owner))
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

namespace {

// What a class makes in its own methods, of itself or of something else by its name, begins
// nothing.
bool is_made_outside(const Program& program, ClassRef cls) {
  const auto calls = program.calls_named(cls.cls->name);
  return !program.handed_on(cls).empty() ||
         std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
           return program.enclosing_class(call.ref()) != cls;
         });
}

bool is_under_decorator(ClassRef cls) {
  const auto& tree = cls.module->tree();
  const auto parent = tree[cls.cls->node].parent;
  return parent != diagnose::kNoNode && tree[parent].kind == diagnose::Kind::decorated;
}

// getattr(datasets, args.name)(root), registry[name]: the script finds classes by their names.
bool script_finds_by_name(const Program& program) {
  for (const std::string_view way : {"getattr", "globals", "eval", "import_module", "instantiate"})
    for (const CallRef& call : program.calls_named(way)) {
      // model.eval(), and def eval(model, loader) of the script
      const bool is_of_object = way == "eval" && (call.receiver() || program.callee(call));
      const bool is_fixed = way == "getattr" && call.positional(1).kind() == diagnose::Kind::string;
      if (call.module == &program.root() && !is_of_object && !is_fixed) return true;
    }
  return program.root().mentions("__dict__");
}

}  // namespace

bool is_in_unmade_class(const Program& program, Ref place) {
  const ClassRef owner = program.enclosing_class(place);
  if (!owner || owner.module == &program.root() || is_under_decorator(owner)) return false;
  const auto& derived = program.derived_of(owner);
  return !is_made_outside(program, owner) &&
         std::none_of(derived.begin(), derived.end(),
                      [&](ClassRef cls) { return is_made_outside(program, cls); }) &&
         !script_finds_by_name(program);
}

bool runs_another_method(const Program& program, FunctionRef function, const CallRef& site) {
  const ClassRef owner = program.enclosing_class({function.module, function.function->body});
  return owner && site.receiver().text() == "self" && program.callee(site) != function &&
         is_in_unmade_class(program, {function.module, function.function->body});
}

}  // namespace bench::pitfalls::facts
