#include "scenarios/pitfalls/data/loader_restarts.hpp"

#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;

namespace {

// What is done where an iterator has ended tells nothing to a sampler: no helper is called, which
// might do that.
bool only_restarts(const diagnose::Module& module, NodeId handler) {
  static constexpr auto kHarmless = std::to_array<std::string_view>(
      {"iter", "next", "print", "len", "str", "info", "debug", "warning", "format", "to", "cuda"});
  return std::all_of(module.calls().begin(), module.calls().end(), [&](const diagnose::Call& call) {
    return !module.tree().contains(handler, call.node) ||
           std::find(kHarmless.begin(), kHarmless.end(), call.name) != kHarmless.end();
  });
}

// if step % len(loader) == 0: batches = iter(loader)
bool is_at_its_end(const Program& program, const CallRef& starts) {
  const std::string length = "% len(" + std::string(starts.positional(0).text()) + ")";
  const auto guards = program.guards(starts.ref());
  // for step in range(len(loader)): one pass, which starts once.
  const Ref around = program.innermost_loop(starts.ref());
  const Ref steps = around ? around.child(Field::right) : Ref{};
  if (steps && facts::contains(steps.text(), length.substr(2)) &&
      program.loops_around(starts.ref()).size() == 1)
    return false;
  return std::any_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
    const auto& tree = guard.condition.module->tree();
    const NodeId branch = tree.child(tree[guard.condition.node].parent, Field::consequence);
    return guard.holds && facts::contains(guard.condition.text(), length) && branch != kNoNode &&
           only_restarts(*starts.module, branch);
  });
}

}  // namespace

bool starts_again(const Program& program, const CallRef& starts) {
  const auto& tree = starts.module->tree();
  if (!starts.positional(0)) return false;
  if (is_at_its_end(program, starts)) return true;
  const NodeId handler = tree.ancestor(starts.call->node, Kind::except_clause);
  if (handler == kNoNode) return false;
  const auto name = program.assigned_name(starts.ref());
  return !name.empty() && facts::contains(tree.text(tree[handler].parent), "next(") &&
         only_restarts(*starts.module, handler);
}

}  // namespace bench::pitfalls
