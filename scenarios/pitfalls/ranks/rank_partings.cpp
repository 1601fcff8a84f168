#include "scenarios/pitfalls/ranks/rank_partings.hpp"

#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/metrics/reductions.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/reach/order.hpp"
#include "scenarios/pitfalls/wrappers/never_wrapped.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Guard;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;
using diagnose::RankTest;
using diagnose::TrainingLoop;

bool trains_what_others_wrap(const Program& program) {
  if (!program.wraps().empty() || program.framework_distributes()) return false;
  for (const Api api : {Api::init_process_group, Api::get_rank, Api::barrier, Api::all_reduce})
    if (program.uses(api)) return unreduced_forwards(program).empty();
  return false;
}

bool steps_in(const Program& program, const TrainingLoop& loop, Ref around) {
  if (around == loop.batches) return true;
  if (!around) return false;
  const auto& tree = around.module->tree();
  const bool is_outside =
      around.module == loop.batches.module && tree.contains(around.node, loop.batches.node);
  const auto& backwards = loop.backwards;
  return !is_outside &&
         std::any_of(backwards.begin(), backwards.end(), [&](const CallRef& backward) {
           return static_cast<bool>(place_in(program, around, backward.ref()));
         });
}

namespace {

// Which ranks come by.
RankTest comers(const Program& program, const Guard& guard) {
  const RankTest test = program.rank_test(guard.condition);
  if (test == RankTest::none || guard.holds) return test;
  // Where rank == 0 and x does not hold, rank 0 may come by as well.
  if (guard.condition.kind() == Kind::boolean) return RankTest::none;
  return test == RankTest::main_only ? RankTest::not_main : RankTest::main_only;
}

// Of break, continue and return.
diagnose::ListedKind leaving_kind(Ref statement) {
  switch (statement.kind()) {
    case Kind::break_statement:
      return Kind::break_statement;
    case Kind::continue_statement:
      return Kind::continue_statement;
    default:
      return Kind::return_statement;
  }
}

}  // namespace

bool leaves_on_some_ranks(const Program& program, const Guard& guard, Ref statement, Ref round) {
  const RankTest here = comers(program, guard);
  if (here == RankTest::none) return false;
  const auto& others = statement.module->nodes_of(leaving_kind(statement));
  return std::none_of(others.begin(), others.end(), [&](NodeId other) {
    if (program.innermost_loop(statement.with(other)) != round) return false;
    const auto guards = program.guards(statement.with(other));
    return std::any_of(guards.begin(), guards.end(), [&](const Guard& each) {
      const RankTest there = comers(program, each);
      return there != RankTest::none && there != here;
    });
  });
}

namespace {

// Under a test of the rank itself, and not below one that leaves the round.
bool is_under_rank_test(const Program& program, Ref node) {
  const auto& tree = node.module->tree();
  const auto guards = program.guards(node);
  return std::any_of(guards.begin(), guards.end(), [&](const Guard& guard) {
    return guard.condition.module == node.module &&
           tree.contains(tree[guard.condition.node].parent, node.node) &&
           program.rank_test(guard.condition) != RankTest::none;
  });
}

}  // namespace

bool skips_a_meeting(const Program& program, const TrainingLoop& loop, Ref statement, Ref round) {
  if (statement.kind() != Kind::continue_statement) return true;
  const auto& tree = round.module->tree();
  const auto is_below = [&](NodeId node) {
    return node > statement.node && tree.contains(round.node, node);
  };
  const auto& backwards = loop.backwards;
  if (std::any_of(backwards.begin(), backwards.end(), [&](const CallRef& backward) {
        const Ref place = place_in(program, round, backward.ref());
        return place && is_below(place.node);
      }))
    return true;
  const auto& breaks = round.module->nodes_of(Kind::break_statement);
  return std::any_of(breaks.begin(), breaks.end(), [&](NodeId node) {
    return is_below(node) && program.innermost_loop(round.with(node)) == round &&
           !is_under_rank_test(program, round.with(node));
  });
}

namespace {

// dist.all_reduce(x), reduce_tensor(x): no gather of indices, no results that are written to a
// file, and no reduce_loss(), which may add up the parts of one.
bool surely_reduces(const Program& program, Ref reduction) {
  const CallRef call = program.as_call(reduction);
  return call && (call.call->api != Api::none ||
                  says_any(call.call->name, {"all_reduce", "allreduce", "reduce_tensor",
                                             "reduce_value", "reduce_dict", "all_gather"}));
}

// Within the round only where the program asks whether there are several ranks.
bool is_asked_for_ranks_alone(const Program& program, Ref node, Ref round) {
  const auto& tree = node.module->tree();
  const auto guards = program.guards(node);
  return program.guarded_by_rank(node) == RankTest::none &&
         std::all_of(guards.begin(), guards.end(), [&](const Guard& guard) {
           const NodeId test = tree[guard.condition.node].parent;
           return guard.condition.module != node.module || test == round.node ||
                  !tree.contains(round.node, test) || !tree.contains(test, node.node) ||
                  program.is_distributed_flag(guard.condition);
         });
}

}  // namespace

bool is_loss_of_batch(const Program& program, Ref condition, Ref round) {
  if (says_any(condition.text(), {"world", "sync", "dist", "global", "across", "agree", "rank",
                                  "norm", "val", "eval", "test", "mean", "avg", "average"}))
    return false;
  const auto& tree = condition.module->tree();
  const VariableNames drawn = variables_in(round.child(diagnose::Field::left));
  const auto is_made_of_batch = [&](const diagnose::Source& source) {
    if (source.ref.module != round.module || !tree.contains(round.node, source.ref.node))
      return false;
    const VariableNames used = variables_in(source.ref);
    return std::any_of(used.begin(), used.end(),
                       [&](const std::string& name) { return drawn.contains(name); });
  };
  for (diagnose::NodeId id = condition.node; id < tree[condition.node].last; ++id) {
    if (tree[id].kind != Kind::identifier || !says_any(tree.text(id), {"loss"})) continue;
    const auto& sources = program.sources(condition.with(id));
    if (std::any_of(sources.begin(), sources.end(), is_made_of_batch)) return true;
  }
  return false;
}

bool reduces_below(const Program& program, Ref statement, Ref round) {
  for (const Reduction& reduction : reductions_of(program)) {
    if (!surely_reduces(program, reduction.call)) continue;
    const Ref place = place_in(program, round, reduction.call);
    // A `finally` runs whoever leaves.
    if (place && place.node > statement.node && program.innermost_loop(place) == round &&
        place.module->tree().ancestor(place.node, Kind::finally_clause) == kNoNode &&
        is_asked_for_ranks_alone(program, place, round) &&
        program.guarded_by_rank(reduction.call) == RankTest::none)
      return true;
  }
  return false;
}

namespace {

// except StopIteration: of the same try has the end of the iterator to itself.
bool tells_end_apart(const diagnose::SyntaxTree& tree, NodeId attempt, NodeId handler) {
  for (NodeId at = tree[attempt].first_child; at != kNoNode && at != handler;
       at = tree[at].next_sibling)
    if (tree[at].kind == Kind::except_clause && tree.text(at).starts_with("except StopIteration"))
      return true;
  return false;
}

}  // namespace

bool swallows_errors(const Program& program, Ref statement, const TrainingLoop& loop, Ref round) {
  const auto& tree = statement.module->tree();
  const NodeId handler = tree.ancestor(statement.node, Kind::except_clause);
  if (handler == kNoNode || !tree.contains(round.node, handler)) return false;
  const std::string_view caught = tree.text(handler);
  const NodeId attempt = tree.ancestor(handler, Kind::try_statement);
  const bool is_any =
      caught.starts_with("except:") || caught.starts_with("except Exception") ||
      (caught.starts_with("except RuntimeError") && !facts::contains(caught, "raise"));
  if (!is_any ||
      (facts::contains(tree.text(attempt), "next(") && !tells_end_apart(tree, attempt, handler)))
    return false;
  // loss = self.step(batch) may hold the backward pass.
  if (round == loop.batches && attempt < handler && tells_end_apart(tree, attempt, handler))
    return true;
  const auto& backwards = loop.backwards;
  return std::any_of(backwards.begin(), backwards.end(), [&](const CallRef& backward) {
    const Ref place = place_in(program, round, backward.ref());
    return place && place.node > attempt && !tree.contains(handler, place.node);
  });
}

namespace {

constexpr std::string_view kEnds[] = {"exit", "_exit", "quit"};

}  // namespace

std::vector<QuietEnd> quiet_ends(const Program& program, const TrainingLoop& loop) {
  std::vector<QuietEnd> out;
  for (const std::string_view name : kEnds)
    for (const CallRef& call : program.calls_named(name)) {
      const std::string_view written = Ref{call.module, call.call->function}.text();
      const Ref status = call.positional(0);
      if ((written != name && !written.starts_with("sys.") && !written.starts_with("os.")) ||
          (status && status.text() != "0"))
        continue;
      for (const Ref round : program.loops_around(call.ref()))
        if (const bool of_epochs = round == loop.epochs && round != loop.batches;
            of_epochs || steps_in(program, loop, round)) {
          out.push_back({call, round, of_epochs});
          break;
        }
    }
  return out;
}

bool ends_on_some_ranks(const Program& program, const QuietEnd& end) {
  if (!is_under_rank_test(program, end.call.ref())) return false;
  const diagnose::Module& module = *end.call.module;
  const auto& tree = module.tree();
  constexpr diagnose::ListedKind kLeaving[] = {Kind::break_statement, Kind::return_statement};
  for (const diagnose::ListedKind kind : kLeaving)
    for (const NodeId other : module.nodes_of(kind))
      if (tree.contains(end.round.node, other)) return false;
  for (const std::string_view name : kEnds)
    for (const CallRef& other : program.calls_named(name))
      if (other.call != end.call.call && other.module == &module &&
          tree.contains(end.round.node, other.call->node))
        return false;
  return true;
}

}  // namespace bench::pitfalls
