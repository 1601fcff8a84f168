#include "scenarios/pitfalls/ranks/early_return.hpp"

#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Guard;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;
using diagnose::RankTest;

namespace {

// The if statement whose body is left by it and whose condition tests the rank alone.
NodeId lone_branch(const Program& program, Ref leaving) {
  const auto& tree = leaving.module->tree();
  const NodeId block = tree[leaving.node].parent;
  const NodeId branch = tree[block].parent;
  if (tree[branch].kind != Kind::if_statement || tree[block].field != Field::consequence ||
      tree.child(branch, Field::alternative) != kNoNode)
    return kNoNode;
  for (NodeId at = tree[branch].first_child; at != kNoNode; at = tree[at].next_sibling)
    if (tree[at].kind == Kind::elif_clause) return kNoNode;
  const Ref condition = leaving.with(tree.child(branch, Field::condition));
  return program.rank_test(condition) != RankTest::none ? branch : kNoNode;
}

bool leaves(Ref node) {
  switch (node.kind()) {
    case Kind::return_statement:
    case Kind::raise_statement:
    case Kind::continue_statement:
    case Kind::break_statement:
      return true;
    case Kind::call:
      return node.text().starts_with("sys.exit(") || node.text().starts_with("exit(") ||
             node.text().starts_with("quit(") || node.text().starts_with("os._exit(");
    default:
      return false;
  }
}

// rank == 0 and done, and the same as one of several reasons: failed or done and rank == 0.
bool asks_for_more(const Program& program, Ref condition) {
  if (condition.kind() != Kind::boolean) return false;
  if ((*condition.module)[condition.node].op == diagnose::Op::logical_and)
    return program.rank_test(condition) != RankTest::none;
  return asks_for_more(program, condition.child(Field::left)) ||
         asks_for_more(program, condition.child(Field::right));
}

// From the branch, the other ranks come to the block that holds the collective.
bool others_go_on(const Program& program, Ref branch, Ref collective) {
  const auto& tree = branch.module->tree();
  NodeId outer = branch.node;
  while (!tree.contains(tree[outer].parent, collective.node)) {
    outer = tree[outer].parent;
    const Kind kind = tree[outer].kind;
    if (outer == kNoNode || kind == Kind::function || kind == Kind::for_statement ||
        kind == Kind::while_statement)
      return false;
  }
  // Directly in that block the test guards the collective itself, unless it asks for more than the
  // rank: after `if rank == 0 and done: return` either may be the case.
  if (outer == branch.node) return asks_for_more(program, branch.child(Field::condition));
  for (NodeId at = tree[branch.node].last; at < tree[outer].last; ++at)
    if (leaves(branch.with(at))) return false;
  return true;
}

// if epoch > 3: in `for epoch in ...` below the return: it holds in some round.
bool holds_in_some_round(const Program& program, Ref condition, Ref leaving) {
  const Ref loop = program.innermost_loop(condition);
  if (loop.kind() != Kind::for_statement || loop.module != leaving.module ||
      loop.module->tree().contains(loop.node, leaving.node))
    return false;
  const std::string_view variable = loop.child(Field::left).text();
  const auto& tree = condition.module->tree();
  for (NodeId id = condition.node; id < tree[condition.node].last; ++id)
    if (tree[id].kind == Kind::identifier && tree.text(id) == variable) return true;
  return false;
}

// if export and rank == 0: ...; return, above if export: return: the others leave as well.
bool others_return_below(const Program& program, Ref leaving, Ref collective) {
  const auto there = program.guards(leaving);
  const auto& module = *leaving.module;
  const auto returns = module.nodes_of(Kind::return_statement);
  return std::any_of(returns.begin(), returns.end(), [&](NodeId node) {
    const Ref other = leaving.with(node);
    if (node <= leaving.node || node > collective.node ||
        program.enclosing_function(other) != program.enclosing_function(leaving))
      return false;
    const auto guards = program.guards(other);
    const Guard* nearest = guards.empty() ? nullptr : &guards.front();
    return nearest != nullptr && nearest->holds &&
           std::any_of(there.begin(), there.end(), [&](const Guard& guard) {
             return guard.holds &&
                    facts::contains(guard.condition.text(), nearest->condition.text());
           });
  });
}

// What must hold for the collective holds at the return too, or says that there are ranks.
bool comes_to(const Program& program, Ref leaving, Ref collective) {
  const auto there = program.guards(leaving);
  const auto& tree = collective.module->tree();
  for (const Guard& guard : program.guards(collective)) {
    const NodeId owner = tree[guard.condition.node].parent;
    const bool passed = !guard.holds && !tree.contains(owner, collective.node);
    if (passed || program.is_distributed_flag(guard.condition) ||
        holds_in_some_round(program, guard.condition, leaving))
      continue;
    if (std::none_of(there.begin(), there.end(), [&](const Guard& other) {
          return other.holds == guard.holds && other.condition.text() == guard.condition.text();
        }))
      return false;
  }
  return true;
}

// if rank != 0: dist.barrier(); return -- the call that the others come to below, made here.
bool calls_it_before(const Program& program, Ref leaving, Ref collective) {
  const CallRef missed = program.as_call(collective);
  const NodeId block = leaving.module->tree()[leaving.node].parent;
  if (!missed || missed.call->api == diagnose::Api::none) return false;
  const auto beside = facts::calls_in(leaving.with(block));
  return std::any_of(beside.begin(), beside.end(), [&](const CallRef& call) {
    return call.call->api == missed.call->api && call.call->node < leaving.node;
  });
}

}  // namespace

Ref return_of_some_ranks(const Program& program, Ref collective) {
  const auto function = program.enclosing_function(collective);
  if (!function) return {};
  for (const NodeId node : collective.module->nodes_of(Kind::return_statement)) {
    const Ref leaving{collective.module, node};
    if (node > collective.node || program.enclosing_function(leaving) != function) continue;
    const NodeId branch = lone_branch(program, leaving);
    if (branch == kNoNode || !others_go_on(program, leaving.with(branch), collective) ||
        facts::exclusive(leaving, collective) ||
        facts::only_without_distribution(program, leaving) ||
        calls_it_before(program, leaving, collective) || !comes_to(program, leaving, collective) ||
        others_return_below(program, leaving, collective))
      continue;
    return leaving;
  }
  return {};
}

namespace {

// sys.exit(), exit(0): the launcher takes the process for done. It ends the others after any other
// number, as after an exception.
bool exits_in_peace(const CallRef& call) {
  const std::string_view function = Ref{call.module, call.call->function}.text();
  if (function != "exit" && function != "quit" && function != "sys.exit" && function != "os._exit")
    return false;
  const Ref code = call.positional(0);
  return !code || code.text() == "0";
}

// Some block around the exit, short of its function, is left by everyone below it.
bool others_leave(Ref leaving) {
  const auto& tree = leaving.module->tree();
  for (NodeId at = tree[leaving.node].parent; at != kNoNode; at = tree[at].parent) {
    if (tree[at].kind != Kind::block) continue;
    const NodeId owner = tree[at].parent;
    if (tree[owner].kind == Kind::function ||
        facts::contains(tree.text(tree.child(owner, Field::condition)), "__name__"))
      return false;
    for (NodeId below = tree[leaving.node].last; below < tree[at].last; ++below)
      if (leaves(leaving.with(below))) return true;
  }
  return false;
}

}  // namespace

Ref exit_of_some_ranks(const Program& program, Ref collective) {
  for (const std::string_view name : {"exit", "quit", "_exit"})
    for (const CallRef& call : program.calls_named(name)) {
      const Ref leaving = call.ref();
      if (!exits_in_peace(call) || program.guarded_by_rank(leaving) != RankTest::main_only ||
          !program.rank_guard(leaving) || !program.loops_around(leaving).empty() ||
          others_leave(leaving) || facts::exclusive(leaving, collective) ||
          facts::only_without_distribution(program, leaving) ||
          !program.runs_before(leaving, collective) || program.runs_before(collective, leaving))
        continue;
      if (program.enclosing_function(leaving) == program.enclosing_function(collective) &&
          !comes_to(program, leaving, collective))
        continue;
      return leaving;
    }
  return {};
}

}  // namespace bench::pitfalls
