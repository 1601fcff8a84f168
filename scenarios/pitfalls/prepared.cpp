#include "scenarios/pitfalls/prepared.hpp"

#include "scenarios/pitfalls/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;

bool only_runs_before(const Program& program, Ref first, Ref second) {
  return program.runs_before(first, second) && !program.runs_before(second, first);
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

// What decides whether `first` runs has decided the same where `second` stands.
bool runs_wherever(const Program& program, Ref first, Ref second) {
  const auto there = program.guards(second);
  const auto here = program.guards(first);
  return std::all_of(here.begin(), here.end(), [&](const diagnose::Guard& guard) {
    return std::any_of(there.begin(), there.end(), [&](const diagnose::Guard& other) {
      return other.holds == guard.holds && other.condition.text() == guard.condition.text();
    });
  });
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
  for (const char* method : {"eval", "parameters"})
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

// DeepSpeed and FSDP keep the states of their own engines, and hand on attributes.
bool prepare_wraps_in_ddp(const Program& program) {
  if (!program.uses(Api::accelerator)) return false;
  for (const std::string_view word :
       {".module", "extract_model", "deepspeed", "DeepSpeed", "fsdp", "FSDP", "FullySharded"})
    if (program.mentions(word)) return false;
  return true;
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
  if (!program.uses(Api::accelerator) || !program.wraps().empty()) return false;
  for (const std::string_view word : {"deepspeed", "DeepSpeed", "fsdp", "FSDP", "FullySharded"})
    if (program.mentions(word)) return false;
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
