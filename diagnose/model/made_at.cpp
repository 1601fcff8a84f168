#include "diagnose/model/made_at.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

constexpr std::size_t kMostFunctions = 4;  // that hand a value back in turn

bool is_call_of(const Module& module, NodeId node, Api api) {
  const Call* call = node == kNoNode ? nullptr : module.call_at(node);
  return call != nullptr && call->api == api;
}

// What the name is given in the function above that line.
std::vector<const Def*> values_above(const Module& module, const Function& function, NodeId name) {
  std::vector<const Def*> out;
  for (const std::uint32_t index : module.defs_of(module.text(name), false)) {
    const Def& def = module.defs()[index];
    if (def.scope == function.node && def.target < name) out.push_back(&def);
  }
  return out;
}

// return SGD(weights), and the name that each branch gives such a call.
bool gives_such_a_call(const Module& module, const Function& function, NodeId returned, Api api) {
  if (is_call_of(module, returned, api)) return true;
  if (module[returned].kind != Kind::identifier) return false;
  const auto values = values_above(module, function, returned);
  return !values.empty() && std::all_of(values.begin(), values.end(), [&](const Def* def) {
    return def->kind == DefKind::assign && is_call_of(module, def->value, api);
  });
}

bool is_returned(const Module& module, NodeId call, NodeId returned) {
  if (returned == call) return true;
  const NodeId parent = module[call].parent;
  return parent != kNoNode && module[parent].kind == Kind::assignment &&
         module[call].field == Field::right && module[returned].kind == Kind::identifier &&
         module.text(module.tree().child(parent, Field::left)) == module.text(returned);
}

// return DDP(net), and net = DDP(net); return net, where the function returns nothing else. Of
// several that it may return all are made in the same way: AdamW(...) in one branch, SGD(...) in
// the other.
bool is_handed_back(const Function& function, const CallRef& call) {
  const Module& module = *call.module;
  const NodeId node = call.call->node;
  const auto& returns = function.returns;
  if (call.call->api != Api::none &&
      std::all_of(returns.begin(), returns.end(), [&](NodeId returned) {
        return gives_such_a_call(module, function, returned, call.call->api);
      }))
    return std::any_of(returns.begin(), returns.end(),
                       [&](NodeId returned) { return is_returned(module, node, returned); });
  if (returns.size() != 1 || !is_returned(module, node, returns.front())) return false;
  if (returns.front() == node) return true;
  const auto values = values_above(module, function, returns.front());
  return std::none_of(values.begin(), values.end(),
                      [&](const Def* def) { return def->target > node; });
}

// The only call of the function that holds the node.
CallRef caller_of(const Program& program, const FunctionRef& function) {
  if (!function || function.function->makes_object()) return {};
  const auto& sites = program.call_sites(function);
  if (sites.size() != 1 || program.enclosing_function(sites.front().ref()) == function) return {};
  return sites.front();
}

// The only call of the function that hands the result of this one back.
CallRef receiver_of_result(const Program& program, const CallRef& call) {
  const FunctionRef function = call ? program.enclosing_function(call.ref()) : FunctionRef{};
  if (!function || !is_handed_back(*function.function, call)) return {};
  return caller_of(program, function);
}

// What the call passes for the parameter of that name; empty where the function gives it another
// value.
Ref argument_of(const CallRef& site, const FunctionRef& function, Ref name) {
  const Module& module = *function.module;
  for (const std::uint32_t index : module.defs_of(name.text(), false)) {
    const Def& def = module.defs()[index];
    if (def.scope == function.function->node && def.kind != DefKind::parameter &&
        def.target < name.node)
      return {};
  }
  const auto& parameters = function.function->parameters;
  const std::size_t first = function.function->owner_class != kNoNode ? 1 : 0;
  for (std::size_t i = first; i < parameters.size(); ++i)
    if (parameters[i].name == name.text()) return site.argument(i - first, name.text());
  return {};
}

}  // namespace

CallRef made_at(const Program& program, CallRef call) {
  for (std::size_t depth = 0; depth < kMostFunctions; ++depth) {
    const CallRef site = receiver_of_result(program, call);
    if (!site) break;
    call = site;
  }
  return call;
}

std::vector<Guard> guards_where_made(const Program& program, CallRef call) {
  std::vector<Guard> out;
  for (std::size_t depth = 0; call && depth < kMostFunctions; ++depth) {
    for (const Guard& guard : program.guards(call.ref())) out.push_back(guard);
    call = receiver_of_result(program, call);
  }
  return out;
}

std::vector<Ref> places_of(const Program& program, Ref node) {
  std::vector<Ref> out{node};
  while (out.size() < kMostFunctions) {
    const CallRef site = caller_of(program, program.enclosing_function(out.back()));
    if (!site) break;
    out.push_back(site.ref());
  }
  return out;
}

Ref seen_above(const Program& program, Ref name) {
  for (std::size_t depth = 0; depth < kMostFunctions; ++depth) {
    const FunctionRef function = program.enclosing_function(name);
    const CallRef site = caller_of(program, function);
    const Ref above = site ? argument_of(site, function, name) : Ref{};
    if (name.kind() != Kind::identifier || above.kind() != Kind::identifier) break;
    name = above;
  }
  return name;
}

Ref seen_in(const Program& program, Ref name, FunctionRef caller) {
  for (std::size_t depth = 0; name && depth <= kMostFunctions; ++depth) {
    const FunctionRef function = program.enclosing_function(name);
    if (function == caller) return name;
    const CallRef site = caller_of(program, function);
    if (!site || name.kind() != Kind::identifier) return {};
    name = argument_of(site, function, name);
  }
  return {};
}

}  // namespace bench::diagnose
