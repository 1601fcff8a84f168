#include "scenarios/pitfalls/reach/unconditional.hpp"

#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;

namespace {

// print(...), log.error(...), parser.print_help(): a branch that does more before it ends is a mode
// of the program, and no check.
bool only_says(Ref statement) {
  constexpr std::string_view kNames[] = {"print", "error",    "warning",    "warn",       "info",
                                         "write", "critical", "print_help", "print_usage"};
  const auto& tree = statement.module->tree();
  const diagnose::Call* call = statement.kind() == Kind::expression_statement
                                   ? statement.module->call_at(tree[statement.node].first_child)
                                   : nullptr;
  return call != nullptr &&
         std::find(std::begin(kNames), std::end(kNames), call->name) != std::end(kNames);
}

}  // namespace

bool ends_the_run(const diagnose::Guard& guard, Ref node) {
  const auto& tree = guard.condition.module->tree();
  const NodeId choice = tree[guard.condition.node].parent;
  const NodeId branch = tree.child(choice, Field::consequence);
  if (guard.holds || branch == kNoNode ||
      (node.module == guard.condition.module && tree.contains(choice, node.node)))
    return false;
  for (NodeId at = tree[branch].first_child; at != kNoNode; at = tree[at].next_sibling) {
    const Ref statement = guard.condition.with(at);
    if (tree[at].next_sibling == kNoNode)
      return statement.kind() == Kind::raise_statement || facts::ends_process(statement);
    if (!only_says(statement)) return false;
  }
  return false;
}

bool is_unconditional(const Program& program, Ref node) {
  const auto guards = program.guards(node);
  return std::all_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
    return ends_the_run(guard, node) &&
           program.rank_test(guard.condition) == diagnose::RankTest::none;
  });
}

}  // namespace bench::pitfalls
