#include "scenarios/pitfalls/prepared.hpp"

#include "scenarios/pitfalls/facts.hpp"
#include "scenarios/pitfalls/order.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;

bool is_of_accelerator(const CallRef& call) {
  return facts::contains(facts::lowered(call.receiver().text()), "accel");
}

namespace {

// The function has a variable or parameter of that name.
bool is_bound_in(diagnose::FunctionRef function, Ref name) {
  for (const auto& parameter : function.function->parameters)
    if (parameter.name == name.text()) return true;
  for (const std::uint32_t index : function.module->defs_of(name.text(), false))
    if (function.module->tree().contains(function.function->body,
                                         function.module->defs()[index].target))
      return true;
  return false;
}

// model, optimizer = accelerator.prepare(model, optimizer), above the use of the same name.
CallRef preparation_of(const Program& program, Ref object) {
  for (const CallRef& prepare : program.calls_named("prepare")) {
    const Ref node = prepare.ref();
    const Ref parent = node.with((*node.module)[node.node].parent);
    const auto here = program.enclosing_function(object);
    const bool of_file = !program.enclosing_function(node) && here && here.module == node.module &&
                         !is_bound_in(here, object);
    if (parent.kind() != diagnose::Kind::assignment ||
        (!of_file &&
         (program.enclosing_function(node) != here || !program.runs_before(node, object))))
      continue;
    const auto& tree = node.module->tree();
    const Ref target = parent.with(tree.child(parent.node, diagnose::Field::left));
    if (!target || !facts::contains(target.text(), object.text())) continue;
    for (std::size_t i = 0; const Ref argument = prepare.positional(i); ++i)
      if (argument.text() == object.text()) return prepare;
  }
  return {};
}

// Optimizers, loaders and schedulers come back from prepare() too, and have no prefix.
bool is_used_as_module(const Program& program, Ref object) {
  if (facts::contains(facts::lowered(object.text()), "optim")) return false;
  for (const char* method : {"eval", "train", "parameters"})
    for (const CallRef& call : program.calls_named(method))
      if (call.receiver() && call.receiver().text() == object.text()) return true;
  return false;
}

// The model is prepared here, or in every caller, which hands it on under the same name.
CallRef preparation_behind(const Program& program, Ref object) {
  if (const CallRef here = preparation_of(program, object)) return here;
  const auto function = program.enclosing_function(object);
  if (!function || object.kind() != diagnose::Kind::identifier) return {};
  CallRef found;
  for (const CallRef& site : program.call_sites(function)) {
    found = {};
    for (std::size_t i = 0; const Ref argument = site.positional(i); ++i)
      if (argument.text() == object.text()) found = preparation_of(program, argument);
    if (const Ref named = site.keyword(object.text()); named && named.text() == object.text())
      found = preparation_of(program, named);
    if (!found) return {};
  }
  return found;
}

// They keep the states of their own engines, and hand on attributes.
bool speaks_of_another_engine(const Program& program) {
  for (const std::string_view word : {"deepspeed", "DeepSpeed", "fsdp", "FSDP", "FullySharded"})
    if (program.mentions(word)) return true;
  return false;
}

// A program that reaches into the wrapper, or takes it off, knows of it.
bool prepare_wraps_in_ddp(const Program& program) {
  return program.uses(Api::accelerator) && !speaks_of_another_engine(program) &&
         !program.mentions(".module") && !program.mentions("extract_model");
}

// model = accelerator.unwrap_model(model): from there on the name is the bare model's.
bool is_unwrapped_into(const Program& program, std::string_view name) {
  const auto unwraps = program.calls_named("unwrap_model");
  return std::any_of(unwraps.begin(), unwraps.end(), [&](const CallRef& unwrap) {
    return program.assigned_name(unwrap.ref()) == name;
  });
}

}  // namespace

bool accelerate_wraps(const Program& program) {
  if (!program.uses(Api::accelerator) || !program.wraps().empty() ||
      speaks_of_another_engine(program))
    return false;
  for (const std::string_view package : {"pytorch_lightning", "lightning", "horovod"})
    if (program.imports(package)) return false;
  for (const CallRef& prepare : program.calls_named("prepare"))
    for (std::size_t i = 0; const Ref argument = prepare.positional(i); ++i)
      if (is_used_as_module(program, argument)) return true;
  return false;
}

CallRef preparation_of_wrapper(const Program& program, Ref object) {
  if (object.kind() != diagnose::Kind::identifier || !prepare_wraps_in_ddp(program) ||
      is_unwrapped_into(program, object.text()) || !is_used_as_module(program, object))
    return {};
  const CallRef prepare = preparation_behind(program, object);
  return prepare && runs_wherever(program, prepare.ref(), object) ? prepare : CallRef{};
}

CallRef preparation_of_model(const Program& program, Ref object) {
  // extract_model is unwrap_model's kin.
  if (program.mentions("unwrap") || !prepare_wraps_in_ddp(program) ||
      !is_used_as_module(program, object))
    return {};
  return preparation_behind(program, object);
}

CallRef preparation_of_loader(const Program& program, Ref loader) {
  return loader && loader.kind() == diagnose::Kind::identifier ? preparation_behind(program, loader)
                                                               : CallRef{};
}

}  // namespace bench::pitfalls
