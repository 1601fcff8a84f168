// What a value is computed from: the calls behind it, and the forward passes among them.
#include "diagnose/model/reaching.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::pitfalls::facts {

using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;
using diagnose::Source;

namespace {

bool is_detached(const Program& program, Ref node) {
  const std::string_view name = program.as_call(node) ? program.as_call(node).call->name : "";
  return name == "detach" || name == "item";
}

bool calls_by_name(FunctionRef caller, FunctionRef called) {
  if (!caller || !called) return false;
  for (const CallRef& call : calls_in({caller.module, caller.function->body}))
    if (call.call->name == called.function->name) return true;
  return false;
}

// helper(out) behind `loss` in loss = helper(out): the arguments of a helper count too.
Ref call_assigned_to(const Program& program, Ref name) {
  const auto& module = *name.module;
  Ref nearest;
  for (const std::uint32_t index : module.defs_of(name.text(), false)) {
    const auto& def = module.defs()[index];
    if (def.kind == diagnose::DefKind::assign && def.target < name.node &&
        module.function_of(def.target) == module.function_of(name.node))
      nearest = name.with(def.value);
  }
  return program.as_call(nearest) ? nearest : Ref{};
}

// What `loss += value` has added to the name since it was given a value.
std::vector<Ref> added_to(Ref name) {
  const diagnose::Module& module = *name.module;
  std::vector<Ref> out;
  NodeId since = 0;
  const auto& defs = module.defs_of(name.text(), false);
  const auto is_addition = [&](std::uint32_t index) {
    return module.defs()[index].kind == diagnose::DefKind::augmented;
  };
  // Most names are added to nowhere, and some have hundreds of values.
  if (std::none_of(defs.begin(), defs.end(), is_addition)) return out;
  const NodeId here = module.function_of(name.node);
  for (const bool adds : {false, true})
    for (const std::uint32_t index : defs) {
      const diagnose::Def& def = module.defs()[index];
      if (is_addition(index) != adds || def.target >= name.node ||
          module.function_of(def.target) != here)
        continue;
      if (!adds && dominates(module, def, name.node)) since = std::max(since, def.target);
      if (adds && def.target > since && def.value != kNoNode) out.push_back(name.with(def.value));
    }
  return out;
}

// self.loss of self.loss.backward(), and not the method of self.loss_of(x).
bool is_kept_value(Ref node) {
  return node.kind() == Kind::attribute && node.child(Field::object).text() == "self" &&
         node.module->tree()[node.node].field != Field::function;
}

// The value itself, or an attribute of it that nobody gives a value: scores = model(x).logits.
bool leads_on(const Source& source) {
  return source.how == Source::How::value || source.how == Source::How::element ||
         (source.how == Source::How::unknown && source.ref.kind() == Kind::attribute);
}

}  // namespace

std::vector<Ref> calls_behind(const Program& program, Ref value,
                              const std::function<bool(Ref call)>& ends) {
  constexpr std::size_t kMost = 300;
  std::vector<Ref> out;
  std::vector<Ref> pending{value};
  std::vector<Ref> seen;
  const FunctionRef start = value ? program.enclosing_function(value) : FunctionRef{};
  while (!pending.empty() && seen.size() < kMost) {
    const Ref at = pending.back();
    pending.pop_back();
    if (!at || std::find(seen.begin(), seen.end(), at) != seen.end()) continue;
    seen.push_back(at);
    const auto& tree = at.module->tree();
    for (NodeId id = at.node; id < tree[at.node].last; ++id) {
      const Kind kind = tree[id].kind;
      const Ref node = at.with(id);
      if (kind == Kind::call && is_detached(program, node)) {
        id = tree[id].last - 1;  // nothing flows back through it
        continue;
      }
      if (kind == Kind::call && std::find(out.begin(), out.end(), node) == out.end())
        out.push_back(node);
      if (kind == Kind::call && ends && ends(node)) {
        id = tree[id].last - 1;
        continue;
      }
      const bool is_name = kind == Kind::identifier && tree[id].field != Field::attribute &&
                           tree[id].field != Field::name && tree[id].field != Field::function;
      if (!is_name && kind != Kind::call && !is_kept_value(node)) continue;
      const FunctionRef here = program.enclosing_function(node);
      if (is_name) {
        for (const Ref added : added_to(node)) pending.push_back(added);
        // losses["mask"] = value, above the name
        for (const Ref item : items_stored_in(node))
          if (item.node <= node.node) pending.push_back(item);
      }
      for (const Source& source : program.sources(node)) {
        if (source.ref == node || !leads_on(source)) continue;
        // A parameter leads to every caller, also to those this value has nothing to do with; the
        // arguments of the call that led here have been looked at.
        const FunctionRef there = program.enclosing_function(source.ref);
        if (there != here && kind == Kind::identifier)
          pending.push_back(call_assigned_to(program, node));
        if (kind == Kind::identifier && here != start && there != here &&
            !calls_by_name(here, there))
          continue;
        if (kind == Kind::call && there == here &&
            !(source.ref.module == node.module && tree.contains(id, source.ref.node)) &&
            program.callee(program.as_call(node)))
          continue;
        pending.push_back(source.ref);
      }
    }
  }
  return out;
}

Ref loss_of(const CallRef& backward) {
  if (const Ref argument = backward.positional(0)) return argument;
  return backward.receiver();
}

std::vector<diagnose::ForwardCall> forwards_behind(const Program& program, Ref value) {
  std::vector<diagnose::ForwardCall> out;
  if (program.forward_calls().empty()) return out;
  const std::vector<Ref> calls = calls_behind(program, value);
  for (const auto& forward : program.forward_calls())
    if (std::find(calls.begin(), calls.end(), forward.call.ref()) != calls.end())
      out.push_back(forward);
  return out;
}

}  // namespace bench::pitfalls::facts
