// Calls of which a run picks the class or the function by a name that it makes: model(opt) after
// model = find_model(opt.model). What may be picked is found in resolve_look_up.cpp.
#include "diagnose/model/program.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

// A class or a function, where there is one.
template <typename Found>
void add_once(std::vector<Found>& list, Found each) {
  if (each && std::find(list.begin(), list.end(), each) == list.end()) list.push_back(each);
}

}  // namespace

std::vector<ClassRef> Program::classes_of_call(CallRef call) const {
  std::vector<ClassRef> out;
  add_once(out, class_of_call(call));
  if (!input_.follows_look_ups || out.empty()) return out;
  for (const Source& source : sources({call.module, call.call->function}))
    if (source.ref.kind() == Kind::class_definition)
      add_once(out, {source.ref.module, source.ref.module->class_at(source.ref.node)});
  return out;
}

std::vector<ClassRef> Program::classes_of(Ref expression) const {
  std::vector<ClassRef> out;
  add_once(out, class_of(expression));
  if (!input_.follows_look_ups || out.empty() || expression.text() == "self") return out;
  for (const Source& source : module_sources(expression))
    if (source.how == Source::How::value)
      for (const ClassRef& each : classes_of_call(as_call(source.ref))) add_once(out, each);
  return out;
}

std::vector<FunctionRef> Program::callees(CallRef call) const {
  std::vector<FunctionRef> out;
  add_once(out, callee(call));
  if (!input_.follows_look_ups || !call || call.call->function == kNoNode) return out;
  const Ref function{call.module, call.call->function};
  const std::vector<ClassRef> made = classes_of_call(call);
  for (const ClassRef& each : made) add_once(out, method(each, "__init__"));
  if (!made.empty()) return out;
  if (function.kind() == Kind::attribute) {
    const Ref object = function.child(Field::object);
    if (object.text() == "self" || object.text().starts_with("super(") ||
        !functions_by_name_.contains(call.call->name))
      return out;
    const std::vector<ClassRef> owners = classes_of(object);
    if (owners.size() > 1)
      for (const ClassRef& each : owners)
        add_once(out, unless_property(method(each, call.call->name)));
  } else if (function.kind() == Kind::identifier || function.kind() == Kind::call ||
             function.kind() == Kind::subscript) {
    for (const Source& source : sources(function))
      if (source.how == Source::How::value && source.ref.kind() == Kind::function)
        add_once(out, {source.ref.module, source.ref.module->function_at(source.ref.node)});
  }
  return out;
}

const std::vector<CallRef>& Program::picks_of(ClassRef cls) const {
  static const std::vector<CallRef> kNone;
  const auto found = picks_.find(cls.cls);
  return found == picks_.end() ? kNone : found->second;
}

// What is found on the way, before all calls are known, is forgotten again.
void Program::index_picks() {
  if (!input_.follows_look_ups) return;
  for (const Module* module : modules())
    for (const Call& made : module->calls()) {
      const CallRef call{module, &made};
      if (made.function == kNoNode || made.api != Api::none || !may_run(*module, made)) continue;
      const Ref function{module, made.function};
      const Kind kind = function.kind();
      const bool is_given_name = kind == Kind::identifier && !module->is_only_defined(made.name) &&
                                 !module->defs_of(made.name, false).empty();
      const bool is_given_attribute =
          kind == Kind::attribute && module->qualified(made.function).empty() &&
          !functions_by_name_.contains(made.name) && !attribute_defs(made.name).empty();
      const bool is_of_file =
          kind == Kind::attribute && functions_by_name_.contains(made.name) &&
          input_.looked_up.contains({module, function.child(Field::object).node});
      if (!is_given_name && !is_given_attribute && !is_of_file && kind != Kind::subscript &&
          kind != Kind::call)
        continue;
      for (const ClassRef& cls : classes_of_call(call))
        if (cls.cls->name != made.name) picks_[cls.cls].push_back(call);
    }
  resolved_.clear();
  call_sites_.clear();
  callees_.clear();
  possible_call_sites_.clear();
}

}  // namespace bench::diagnose
