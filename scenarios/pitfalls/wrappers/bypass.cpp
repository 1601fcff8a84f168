#include "scenarios/pitfalls/wrappers/bypass.hpp"

#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/wrappers/mode_of_object.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Guard;
using diagnose::Kind;
using diagnose::Wrap;

namespace {

// raw for raw(x), raw.step(x) and raw["a"](x); empty for what is no plain name.
Ref name_called(const CallRef& call) {
  Ref object{call.module, call.call->function};
  if (const Ref receiver = call.receiver()) object = receiver;
  if (object.kind() == Kind::subscript)
    object = object.with(object.module->tree()[object.node].first_child);
  return object.kind() == Kind::identifier ? object : Ref{};
}

// self.raw for self.raw(x) and self.raw.step(x).
Ref attribute_called(const CallRef& call) {
  Ref object{call.module, call.call->function};
  const Ref receiver = call.receiver();
  if (receiver && receiver.text() != "self") object = receiver;
  return object.kind() == Kind::attribute && object.child(Field::object).text() == "self" ? object
                                                                                          : Ref{};
}

// de_parallel(model) of a file that is not at hand: by its name it gives what stands inside.
const Wrap* unwrapped_by_name(const Program& program, Ref value) {
  const CallRef call = program.as_call(value);
  if (!call || !call.positional(0) || call.positional(1) || program.callee(call)) return nullptr;
  const std::string_view name = call.call->name;
  if (name != "de_parallel" && name != "unwrap" && name != "unwrap_model" && name != "unwrap_ddp" &&
      name != "unwrap_ddp_model" && name != "get_raw_model" && name != "get_bare_model")
    return nullptr;
  return program.wrap_of(call.positional(0), diagnose::Wrapper::ddp);
}

}  // namespace

bool runs_no_forward(const Program& program, const CallRef& call) {
  static constexpr auto kMethods = std::to_array<std::string_view>({"add_module",
                                                                    "apply",
                                                                    "bfloat16",
                                                                    "buffers",
                                                                    "children",
                                                                    "compile",
                                                                    "cpu",
                                                                    "cuda",
                                                                    "double",
                                                                    "eval",
                                                                    "float",
                                                                    "get_buffer",
                                                                    "get_parameter",
                                                                    "get_submodule",
                                                                    "half",
                                                                    "load_state_dict",
                                                                    "modules",
                                                                    "named_buffers",
                                                                    "named_children",
                                                                    "named_modules",
                                                                    "named_parameters",
                                                                    "no_sync",
                                                                    "parameters",
                                                                    "register_buffer",
                                                                    "register_comm_hook",
                                                                    "register_forward_hook",
                                                                    "register_forward_pre_hook",
                                                                    "register_full_backward_hook",
                                                                    "register_parameter",
                                                                    "requires_grad_",
                                                                    "share_memory",
                                                                    "state_dict",
                                                                    "to",
                                                                    "to_empty",
                                                                    "type",
                                                                    "zero_grad"});
  if (!call.receiver()) return false;
  const std::string_view name = call.call->name;
  // train(batch) of a class of its own is a step; train(False) and train(mode) are a mode.
  if (name == "train") {
    const Ref mode = call.positional(0);
    return !mode || program.is_literal_true(mode) || program.is_literal_false(mode);
  }
  return std::find(kMethods.begin(), kMethods.end(), name) != kMethods.end();
}

const Wrap* wrapper_of_inner(const Program& program, Ref value) {
  if (value.kind() != Kind::attribute || value.child(Field::attribute).text() != "module")
    return nullptr;
  return program.wrap_of(value.child(Field::object), diagnose::Wrapper::ddp);
}

bool is_unwrapped_above(const Program& program, const CallRef& call) {
  const Ref name = name_called(call);
  if (!name) return false;
  const auto& tree = name.module->tree();
  const std::string below = std::string(name.text()) + ".module";
  const auto& defs = name.module->defs_of(name.text(), false);
  return std::any_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
    const Ref value = name.with(name.module->defs()[index].value);
    if (!value || value.node > name.node || value.text() != below ||
        program.enclosing_function(value) != program.enclosing_function(name))
      return false;
    const diagnose::NodeId test = tree.ancestor(value.node, Kind::if_statement);
    const auto guards = program.guards(value);
    return test != diagnose::kNoNode && tree.contains(tree[test].parent, name.node) &&
           !tree.contains(test, name.node) && guards.size() == 1 && guards.front().holds &&
           (facts::contains(guards.front().condition.text(), "isinstance(") ||
            facts::contains(guards.front().condition.text(), "hasattr("));
  });
}

const Wrap* wrapper_gone_round(const Program& program, const CallRef& call) {
  // unwrap(model).loss(x), unwrap(model)(x)
  for (const Ref taken : {call.receiver(), Ref{call.module, call.call->function}}) {
    if (!taken || taken.kind() != Kind::call) continue;
    if (const Wrap* wrap = unwrapped_by_name(program, taken)) return wrap;
    for (const diagnose::Source& source : program.sources(taken))
      if (const Wrap* wrap = wrapper_of_inner(program, source.ref)) return wrap;
  }
  Ref object = name_called(call);
  // An object that was handed the inner model may only measure it.
  const bool is_own = !object || object.text() == "self";
  if (is_own) object = attribute_called(call);
  if (!object) return nullptr;
  for (const diagnose::Source& source : program.sources(object)) {
    if (const Wrap* wrap = unwrapped_by_name(program, source.ref)) return wrap;
    if (is_own && !source.ref.text().starts_with("self.")) continue;
    // model.module.encoder is below it too
    for (Ref inner = source.ref; inner.kind() == Kind::attribute;
         inner = inner.child(Field::object))
      if (const Wrap* wrap = wrapper_of_inner(program, inner)) return wrap;
  }
  return nullptr;
}

namespace {

// The names that self.NAME is given in the class of the place; empty where it is given anything
// else.
std::vector<Ref> names_given_to(const Program& program, Ref attribute) {
  std::vector<Ref> out;
  const diagnose::Module& module = *attribute.module;
  for (const std::uint32_t index :
       module.defs_of(attribute.child(diagnose::Field::attribute).text(), true)) {
    const diagnose::Def& def = module.defs()[index];
    const Ref value = attribute.with(def.value);
    if (program.enclosing_class(attribute.with(def.target)) != program.enclosing_class(attribute))
      continue;
    if (def.kind != diagnose::DefKind::assign || def.value == diagnose::kNoNode ||
        value.kind() != diagnose::Kind::identifier)
      return {};
    out.push_back(value);
  }
  return out;
}

bool is_of_self(Ref node) {
  return node.kind() == diagnose::Kind::attribute &&
         node.child(diagnose::Field::object).text() == "self";
}

}  // namespace

bool is_other_attribute_of(const Program& program, Ref function, const diagnose::Wrap& wrap) {
  if (!wrap.module || !is_of_self(function) || !is_of_self(wrap.module) ||
      function.module != wrap.module.module || function.text() == wrap.module.text() ||
      program.enclosing_class(function) != program.enclosing_class(wrap.module))
    return false;
  const auto given = names_given_to(program, function);
  if (given.size() != 1 || !facts::is_parameter(program, given.front())) return false;
  // The parameter that goes into both is the bare model wherever it is read.
  const diagnose::Module& module = *function.module;
  const auto& defs = module.defs_of(wrap.module.child(diagnose::Field::attribute).text(), true);
  return std::any_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
    const diagnose::Def& def = module.defs()[index];
    const Ref value = function.with(def.value);
    return def.value != diagnose::kNoNode && value.kind() == diagnose::Kind::identifier &&
           value.text() == given.front().text() &&
           program.enclosing_function(value) == program.enclosing_function(given.front());
  });
}

namespace {

// if mode != "train": return loss, above the backward pass: what stands under the same condition
// has none.
bool returns_above(const Program& program, Ref bypass, Ref backward) {
  const auto around = program.guards(bypass);
  const auto is_around = [&](const Guard& guard) {
    return std::any_of(around.begin(), around.end(), [&](const Guard& each) {
      return each.holds == guard.holds && each.condition.text() == guard.condition.text();
    });
  };
  const auto returns = bypass.module->nodes_of(Kind::return_statement);
  return std::any_of(returns.begin(), returns.end(), [&](diagnose::NodeId node) {
    const Ref leaving = bypass.with(node);
    if (node < bypass.node || (bypass.module == backward.module && node > backward.node) ||
        program.enclosing_function(leaving) != program.enclosing_function(bypass) ||
        program.enclosing_function(leaving) != program.enclosing_function(backward))
      return false;
    const auto guards = program.guards(leaving);
    return std::all_of(guards.begin(), guards.end(), is_around);
  });
}

// The bypass stands under a condition, and the forward pass does not, that asks whether to train.
bool asks_whether_to_train(const Program& program, Ref bypass, Ref forward) {
  const auto beside = program.guards(forward);
  const auto guards = program.guards(bypass);
  return std::any_of(guards.begin(), guards.end(), [&](const Guard& guard) {
    const bool shared = std::find(beside.begin(), beside.end(), guard) != beside.end();
    return !shared && asks_for_run(guard.condition);
  });
}

}  // namespace

bool trains_in_other_steps(const Program& program, Ref bypass, Ref forward, Ref backward) {
  return facts::exclusive(forward, bypass) && !facts::are_of_different_modes(bypass, backward) &&
         !returns_above(program, bypass, backward) &&
         !asks_whether_to_train(program, bypass, forward);
}

}  // namespace bench::pitfalls
