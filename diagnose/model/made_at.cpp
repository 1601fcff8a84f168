#include "diagnose/model/made_at.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

constexpr int kMostFunctions = 4;  // that hand a value back in turn

// return DDP(net), and net = DDP(net); return net, where the function returns nothing else.
bool is_handed_back(const Function& function, const CallRef& call) {
  const Module& module = *call.module;
  const NodeId node = call.call->node;
  if (function.returns.size() != 1) return false;
  const NodeId returned = function.returns.front();
  if (returned == node) return true;
  const NodeId parent = module[node].parent;
  if (parent == kNoNode || module[parent].kind != Kind::assignment ||
      module[node].field != Field::right || module[returned].kind != Kind::identifier ||
      module.text(module.tree().child(parent, Field::left)) != module.text(returned))
    return false;
  const auto& defs = module.defs_of(module.text(returned), false);
  return std::none_of(defs.begin(), defs.end(), [&](const std::uint32_t index) {
    const Def& def = module.defs()[index];
    return def.scope == function.node && def.target > node && def.target < returned;
  });
}

// The only call of the function that holds the node.
CallRef caller_of(const Program& program, const FunctionRef& function) {
  if (!function || function.function->name == "__init__") return {};
  const auto& sites = program.call_sites(function);
  return sites.size() == 1 ? sites.front() : CallRef{};
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
  for (int depth = 0; call && depth < kMostFunctions; ++depth) {
    const FunctionRef function = program.enclosing_function(call.ref());
    if (!function || !is_handed_back(*function.function, call)) break;
    const CallRef site = caller_of(program, function);
    if (!site || program.enclosing_function(site.ref()) == function) break;
    call = site;
  }
  return call;
}

Ref seen_in(const Program& program, Ref name, FunctionRef caller) {
  for (int depth = 0; name && depth <= kMostFunctions; ++depth) {
    const FunctionRef function = program.enclosing_function(name);
    if (function == caller) return name;
    const CallRef site = caller_of(program, function);
    if (!site || name.kind() != Kind::identifier) return {};
    name = argument_of(site, function, name);
  }
  return {};
}

}  // namespace bench::diagnose
