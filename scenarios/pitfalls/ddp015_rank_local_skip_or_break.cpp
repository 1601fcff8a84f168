#include "diagnose/model/made_at.hpp"
#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/frameworks/engines.hpp"
#include "scenarios/pitfalls/frameworks/lightning_steps.hpp"
#include "scenarios/pitfalls/frameworks/prepared.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/metrics/torchmetrics.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/ranks/local_decisions.hpp"
#include "scenarios/pitfalls/ranks/own_ranks.hpp"
#include "scenarios/pitfalls/ranks/own_readings.hpp"
#include "scenarios/pitfalls/ranks/rank_partings.hpp"
#include "scenarios/pitfalls/reach/order.hpp"
#include "scenarios/pitfalls/steps/rounds_elsewhere.hpp"
#include "scenarios/pitfalls/steps/stand_in_loss.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Guard;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::Module;
using diagnose::NodeId;
using diagnose::RankTest;
using diagnose::TrainingLoop;

namespace {

constexpr std::string_view kOnMetric = "on a metric of this rank";
constexpr std::string_view kOfOneRank = "on a value that one rank keeps";
constexpr diagnose::ListedKind kLeaving[] = {Kind::continue_statement, Kind::break_statement,
                                             Kind::return_statement};

bool is_collective(const CallRef& call) {
  for (const Api api : {Api::all_reduce, Api::broadcast, Api::all_gather, Api::reduce})
    if (call.call->api == api) return true;
  const std::string name = facts::lowered(call.call->name);
  // logits.gather(1, index) and einops.reduce(x, "b c -> b", "mean") stay on this rank.
  const std::string_view path = call.call->path;
  for (const std::string_view package : {"torch.gather", "einops.", "functools.", "numpy."})
    if (path.starts_with(package)) return false;
  if (name == "gather" && path.empty() && call.receiver() &&
      (call.keyword("index") || call.keyword("dim") ||
       (call.positional(1) &&
        !says_any(call.receiver().text(), {"comm", "dist", "accel", "fabric"}))))
    return false;
  for (const std::string_view word : {"reduce", "gather", "broadcast"})
    if (facts::contains(name, word)) return true;
  return false;
}

// The ranks talk in the same round before one of them decides, or where the decision is computed.
bool agrees_within(const Program& program, Ref statement, Ref round) {
  const auto guards = program.guards(statement);
  const auto trains = [](const CallRef& each) { return each.call->name == "backward"; };
  const auto is_training_beside = [&](const CallRef& call) {
    return program.callee(call) && program.subtree_calls(call.ref(), trains) && !guards.empty() &&
           is_beside_training(program, call, guards.front().condition, round);
  };
  for (const CallRef& call : facts::calls_in(round))
    if (call.call->node < statement.node && !is_training_beside(call) &&
        (is_collective(call) || reduces_on_compute(program, call) ||
         program.subtree_calls(call.ref(), is_collective)))
      return true;
  for (const Guard& guard : guards) {
    const auto calls = facts::calls_behind(program, guard.condition);
    if (std::any_of(calls.begin(), calls.end(),
                    [&](Ref call) { return program.subtree_calls(call, is_collective); }))
      return true;
  }
  return false;
}

// The same of a round that runs the statement in a function: in that, and above its call.
bool agrees_between_ranks(const Program& program, Ref statement, Ref round) {
  for (const Ref place : diagnose::places_of(program, statement)) {
    const bool is_here =
        place.module == round.module && round.module->tree().contains(round.node, place.node);
    if (agrees_within(program, place, is_here ? round : body_around(program, place))) return true;
    if (is_here) break;
  }
  return false;
}

bool catches_out_of_memory(Ref statement) {
  const auto& tree = statement.module->tree();
  const NodeId handler = tree.ancestor(statement.node, Kind::except_clause);
  return handler != kNoNode && (facts::contains(tree.text(handler), "out of memory") ||
                                facts::contains(tree.text(handler), "OutOfMemory"));
}

// Every rank evaluates the whole validation set with the same weights, and so comes to the same
// figure: the loaders of the round's evaluations are known and have no sampler.
bool evaluates_whole_sets(const Program& program, Ref round) {
  // Losses differ in their last digits, and those of a model that draws numbers by more.
  for (const NodeId node : round.module->nodes_of(Kind::if_statement)) {
    const Ref decision = round.with(node).child(diagnose::Field::condition);
    if (round.module->tree().contains(round.node, node) && decision &&
        facts::contains(facts::lowered(decision.text()), "loss"))
      return false;
  }
  bool any = false;
  for (const Module* module : program.modules())
    for (const NodeId node : module->loops()) {
      const Ref loop{module, node};
      if (loop.kind() != Kind::for_statement) continue;
      for (const CallRef& loader : loaders_of(program, loop.child(diagnose::Field::right))) {
        if (!is_evaluation_loader(program, loader)) continue;
        const auto around = program.loops_around(loop);
        if (std::find(around.begin(), around.end(), round) == around.end()) continue;
        if (has_some_sampler(program, loader)) return false;
        any = true;
      }
    }
  return any;
}

Finding& tell(Ref statement, std::string_view why, Report& report) {
  std::string way = "break ";
  if (statement.kind() == Kind::continue_statement) way = "continue ";
  if (statement.kind() == Kind::return_statement) way = "return ";
  Finding& finding =
      report.at(statement, Confidence::likely,
                way + std::string(why) +
                    ": the other ranks go on, so collectives pair up one step off or hang");
  finding.help =
      "All-reduce the condition first, so that every rank decides alike; or zero the loss "
      "and call backward all the same.";
  return finding;
}

// The loop over epochs; one of several that call what trains, where train() and
// train_and_validate() share it.
bool counts_epochs_of(const Program& program, const TrainingLoop& loop, Ref around) {
  if (around == loop.epochs) return true;
  if (!around || !loop.epochs || !loop.function || around.kind() != Kind::for_statement ||
      around.module != loop.epochs.module)
    return false;
  const CallRef counter =
      program.as_call(program.strip_iterable(around.child(diagnose::Field::right)));
  const auto calls = facts::calls_in(around);
  return counter && counter.call->name == "range" && !program.cuts_data(around) &&
         std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
           return program.innermost_loop(call.ref()) == around &&
                  program.callee(call) == loop.function;
         });
}

// Rounds whose steps are in a file that is not here, or in which the ranks meet though no DDP is
// seen: of them a break of some ranks is told.
void check_rounds_of_all(const Program& program, bool by_hand, Report& report) {
  const auto& loops = program.training_loops();
  for (const Module* module : program.modules())
    for (const NodeId node : module->nodes_of(Kind::break_statement)) {
      const Ref statement{module, node};
      const Ref round = program.innermost_loop(statement);
      const auto is_of_round = [&](const TrainingLoop& loop) {
        return counts_epochs_of(program, loop, round) || steps_in(program, loop, round);
      };
      if (!round || (by_hand && std::any_of(loops.begin(), loops.end(), is_of_round)) ||
          (!trains_elsewhere(program, round) && !meets_in_each(program, round, statement)))
        continue;
      const auto guards = program.guards(statement);
      if (std::any_of(guards.begin(), guards.end(), [&](const Guard& guard) {
            return module->tree().contains(round.node, guard.condition.node) &&
                   leaves_on_some_ranks(program, guard, statement, round);
          }))
        tell(statement, "under a test of the rank", report);
    }
}

// if torch.isnan(loss): continue, above a reduction in the same round that all ranks come to: they
// wait there, whoever makes the backward pass.
void check_skipped_reductions(const Program& program, bool by_hand, Report& report) {
  if (!facts::is_distributed(program)) return;
  const auto& loops = program.training_loops();
  for (const diagnose::ListedKind kind : kLeaving)
    for (const Module* module : program.modules())
      for (const NodeId node : module->nodes_of(kind)) {
        const Ref statement{module, node};
        const Ref round = program.innermost_loop(statement);
        if (!round || (by_hand && std::any_of(loops.begin(), loops.end(), [&](const auto& loop) {
                         return steps_in(program, loop, round);
                       })))
          continue;
        const auto guards = program.guards(statement);
        if (std::none_of(guards.begin(), guards.end(), [&](const Guard& guard) {
              return module->tree().contains(round.node, guard.condition.node) &&
                     module->tree().contains((*module)[guard.condition.node].parent, node) &&
                     depends_on_local_data(guard.condition.text()) &&
                     is_loss_of_batch(program, guard.condition, round);
            }))
          continue;
        if (reduces_below(program, statement, round) &&
            !facts::only_without_distribution(program, statement) &&
            facts::is_reachable(program, statement) &&
            !agrees_between_ranks(program, statement, round))
          tell(statement, "on a loss that only this rank sees", report);
      }
}

// is_valid, error = check_loss(loss): a verdict of a function about the loss that it is given. One
// of this program has to look for numbers that are none.
bool is_verdict_on_loss(const Program& program, Ref condition) {
  if (condition.kind() == Kind::not_expression)
    condition = condition.child(diagnose::Field::argument);
  for (const Ref each : facts::calls_behind(program, condition)) {
    const CallRef call = program.as_call(each);
    if (!call || call.call->api != Api::none) continue;
    const std::string name = facts::lowered(call.call->name);
    const auto callee = program.callee(call);
    const bool looks = callee ? depends_on_local_data(callee.module->text(callee.function->body))
                              : holds_any(name, {"check", "valid", "finite"});
    const std::string given = facts::lowered(call.positional(0).text());
    if (looks && facts::contains(name, "loss") && facts::contains(given, "loss")) return true;
  }
  return false;
}

// The other branch leaves the round, which is told there, or has a backward pass of its own:
// (0 * loss).backward().
bool has_another_way(Ref condition) {
  const auto& tree = condition.module->tree();
  const Ref test = condition.with(tree[condition.node].parent);
  for (NodeId at = test.node; at < tree[test.node].last; ++at)
    if (tree[at].kind == Kind::continue_statement || tree[at].kind == Kind::break_statement)
      return true;
  const auto calls = facts::calls_in(test);
  return std::count_if(calls.begin(), calls.end(),
                       [](const CallRef& call) { return call.call->name == "backward"; }) > 1;
}

// return in if torch.isnan(loss): return None, above the backward pass of a function that makes one
// step. Empty where the test does anything else.
Ref return_above(const Program& program, const CallRef& backward, Ref test) {
  const auto& tree = backward.module->tree();
  if (test.kind() != Kind::if_statement || program.innermost_loop(backward.ref()) ||
      tree[test.node].last > backward.call->node)
    return {};
  for (const NodeId node : backward.module->nodes_of(Kind::return_statement))
    if (tree.contains(test.node, node)) return test.with(node);
  return {};
}

// if not torch.isnan(loss): loss.backward(): on the other ranks there may be one.
void check_skipped_backwards(const Program& program, Report& report) {
  for (const TrainingLoop& loop : program.training_loops())
    for (const CallRef& backward : loop.backwards) {
      const auto loops = program.loops_around(backward.ref());
      const Ref around = loops.empty() ? Ref{} : loops.front();
      if (!around || program.guarded_by_rank(backward.ref()) != RankTest::none) continue;
      for (const Guard& guard : program.guards(backward.ref())) {
        const auto& tree = backward.module->tree();
        const Ref test = guard.condition.with(tree[guard.condition.node].parent);
        const Ref leaving = return_above(program, backward, test);
        if (test.kind() != Kind::if_statement || !runs_in(program, around, test) ||
            (!leaving && !tree.contains(test.node, backward.call->node)) ||
            has_another_way(guard.condition))
          continue;
        const bool local = depends_on_local_data(guard.condition.text()) ||
                           is_verdict_on_loss(program, guard.condition) ||
                           reads_local_data(program, guard.condition, around);
        if (!local || agrees_between_ranks(program, backward.ref(), around)) continue;
        Finding& finding =
            report.at(leaving ? leaving : guard.condition, Confidence::likely,
                      "backward() is left out on a loss that only this rank sees: the other ranks "
                      "wait for it in the reduction of their gradients");
        if (program.uses(Api::accelerator)) finding.severity = Severity::warning;
        finding.help =
            "All-reduce the condition first, so that every rank decides alike; or zero the loss "
            "and call backward all the same.";
        break;
      }
    }
}

// A statement that leaves a round of training.
struct WayOut {
  const TrainingLoop& loop;
  Ref statement;
  Ref round;
  bool of_epochs;
};

// A step of the round is still to come: what is skipped below it are prints.
bool skips_a_step(const WayOut& way) {
  const auto& backwards = way.loop.backwards;
  return way.statement.kind() != Kind::continue_statement ||
         std::any_of(backwards.begin(), backwards.end(), [&](const CallRef& backward) {
           return backward.module != way.round.module ||
                  !way.round.module->tree().contains(way.round.node, backward.call->node) ||
                  backward.call->node > way.statement.node;
         });
}

// (scores.sum() * 0).backward() above continue: the branch makes a step of its own.
bool steps_before(const WayOut& way, Ref decision) {
  const auto& backwards = way.loop.backwards;
  return way.statement.kind() == Kind::continue_statement &&
         decision.module == way.statement.module &&
         std::any_of(backwards.begin(), backwards.end(), [&](const CallRef& backward) {
           return backward.module == decision.module && backward.call->node > decision.node &&
                  backward.call->node < way.statement.node;
         });
}

// not torch.isfinite(total), after total = clip_grad_norm_(net.parameters(), 1.0)
bool asks_for_norm(const Program& program, Ref decision) {
  const auto behind = facts::calls_behind(program, decision);
  return std::any_of(behind.begin(), behind.end(), [&](Ref each) {
    return facts::contains(program.as_call(each).call->name, "grad_norm");
  });
}

// Why ranks may decide apart; empty where nothing says so.
std::string_view reason(const Program& program, Ref decision, const WayOut& way) {
  const std::string_view text = decision.text();
  if (steps_before(way, decision)) return {};
  // Norms of gradients are taken after the reduction, alike on all ranks.
  if (facts::contains(facts::lowered(text), "norm") || asks_for_norm(program, decision)) return {};
  std::string_view why;
  if (depends_on_local_data(text)) why = "on a loss that only this rank sees";
  if (program.guarded_by_rank(way.statement) != RankTest::none) return why;
  if (reads_the_clock(program, decision)) why = "on the clock of this rank";
  if (!way.of_epochs &&
      (reads_an_output(program, decision) || reads_local_data(program, decision, way.round) ||
       (why.empty() && skips_a_step(way) && reads_own_batch(program, decision, way.round))))
    why = "on a value that only this rank computes";
  if (way.of_epochs &&
      (stops_early(program, decision) || counts_bad_rounds(program, decision, way.round)))
    why = kOnMetric;
  if (!skips_a_step(way)) return why;
  if (counts_on_one_rank(program, decision)) why = "on a progress bar that only one rank counts";
  if (is_kept_by_one_rank(program, decision, way.round)) why = kOfOneRank;
  return why;
}

// if not torch.isfinite(loss): sys.exit(0)
void check_quiet_ends(const Program& program, Report& report) {
  for (const TrainingLoop& loop : program.training_loops())
    for (const QuietEnd& end : quiet_ends(program, loop))
      for (const Guard& guard : program.guards(end.call.ref())) {
        const auto& [call, round, of_epochs] = end;
        if (!runs_in(program, round, guard.condition)) continue;
        std::string_view why;
        if (!of_epochs) why = reason(program, guard.condition, {loop, call.ref(), round, false});
        // What the ranks told each other above does not make them one.
        const bool some_ranks = why.empty() && ends_on_some_ranks(program, end);
        if (some_ranks) why = "under a test of the rank";
        if (why.empty() || (!some_ranks && agrees_between_ranks(program, call.ref(), round)))
          continue;
        in_no_trial(
            report.at(call.ref(), Confidence::likely,
                      "the process ends as if all were well " + std::string(why) +
                          ": no launcher stops the other ranks, which wait for it in their next "
                          "collective"))
            .help = "Raise an error, or all-reduce the condition first.";
        break;
      }
}

// Accelerate distributes, in DDP or by another engine: all of them reduce in each step.
bool is_accelerated(const Program& program) {
  return program.uses(Api::accelerator) && !wraps_by_itself(program) &&
         has_call_of_accelerator(program, "prepare");
}

// continue where nothing of the round is left to be skipped.
bool skips_nothing(Ref statement, Ref around) {
  const auto& tree = statement.module->tree();
  if (statement.kind() != Kind::continue_statement ||
      tree.ancestor(statement.node, Kind::except_clause) != diagnose::kNoNode)
    return false;
  const NodeId body = tree.child(around.node, diagnose::Field::body);
  return body != diagnose::kNoNode && tree[statement.node].last == tree[body].last;
}

// The round goes, itself or in a function, over a prepared loader without gradients: what comes of
// it is the figure of one process's part.
bool evaluates_prepared_parts(const Program& program, Ref round) {
  for (const Module* module : program.modules())
    for (const NodeId node : module->loops()) {
      const Ref loop{module, node};
      if (loop.kind() != Kind::for_statement) continue;
      const Ref items = program.strip_iterable(loop.child(diagnose::Field::right));
      if (!program.is_evaluation(loop) || !preparation_of_loader(program, items)) continue;
      const auto around = program.loops_around(loop);
      if (std::find(around.begin(), around.end(), round) != around.end()) return true;
    }
  return false;
}

}  // namespace

void check_rank_local_skip_or_break(const Program& program, Report& report) {
  check_lightning_steps(program, report);
  const bool by_accelerate = is_accelerated(program);
  // Horovod's optimizer reduces in each step, as the wrapper does.
  const bool by_horovod = program.uses(Api::hvd_optimizer) && has_ranks_of_its_own(program);
  const bool by_hand = by_accelerate || by_horovod || trains_what_others_wrap(program) ||
                       trains_by_engine(program) ||
                       (program.has_ddp() && !program.framework_distributes());
  if (by_hand || program.uses(Api::hvd_optimizer)) check_skipped_backwards(program, report);
  if (by_hand || !program.framework_distributes()) {
    check_rounds_of_all(program, by_hand, report);
    check_skipped_reductions(program, by_hand, report);
  }
  if (!by_hand) return;
  check_stand_in_losses(program, report);
  check_quiet_ends(program, report);
  for (const TrainingLoop& loop : program.training_loops())
    for (const diagnose::ListedKind kind : kLeaving)
      for (const Module* module : program.modules())
        for (const NodeId node : module->nodes_of(kind)) {
          const Ref statement{module, node};
          const Ref around = program.innermost_loop(statement);
          const bool of_epochs = counts_epochs_of(program, loop, around);
          const bool swallows = around && swallows_errors(program, statement, loop, around);
          if ((!of_epochs && !steps_in(program, loop, around) && !swallows) ||
              (around && skips_nothing(statement, around)))
            continue;
          std::string why;
          bool some_ranks = false;
          bool by_itself = false;
          if (swallows) why = "after an error that only this rank may meet";
          if (catches_out_of_memory(statement)) why = "after running out of memory";
          for (const Guard& guard : program.guards(statement)) {
            const NodeId test = (*module)[guard.condition.node].parent;
            if (!module->tree().contains(around.node, guard.condition.node) ||
                !module->tree().contains(test, node))  // not of an if above that leaves the loop
              continue;
            for (const Ref decision : decisions_behind(program, guard.condition, around))
              if (const auto said = reason(program, decision, {loop, statement, around, of_epochs});
                  !said.empty())
                why = said;
            by_itself = by_itself || why == kOfOneRank ||
                        (has_clock(guard.condition) && reads_the_clock(program, guard.condition));
            if (leaves_on_some_ranks(program, guard, statement, around) &&
                skips_a_meeting(program, loop, statement, around))
              some_ranks = true;
          }
          if (some_ranks) why = "under a test of the rank";
          // What a collective above has told all ranks says nothing of an error below it, nor of a
          // clock that is read below it, nor of what one rank keeps for itself.
          const bool in_handler = swallows || catches_out_of_memory(statement);
          if (why.empty() || facts::only_without_distribution(program, statement) ||
              (!some_ranks && !in_handler && !by_itself &&
               agrees_between_ranks(program, statement, around)))
            continue;
          Finding& finding = tell(statement, why, report);
          if (by_accelerate) finding.severity = Severity::warning;  // it may run as one process
          if (why == kOnMetric && (by_accelerate ? !evaluates_prepared_parts(program, around)
                                                 : evaluates_whole_sets(program, around)))
            tell_as_note(finding);
        }
}

namespace {

// Batches skipped by each rank; empty where all ranks skipped equally many.
std::string unequal_skips(const RunEvidence& run) {
  const std::vector<Json> skipped = run.of_every_rank("skipped");
  for (const Json& each : skipped)
    if (each != skipped.front()) return listed(Json(skipped));
  return {};
}

}  // namespace

void judge_rank_local_skip_or_break(const RunEvidence& run, RunReport& report) {
  const std::string skips = unequal_skips(run);
  if (skips.empty()) return;
  Finding& finding = report.add(Confidence::certain,
                                "the ranks skipped unequal numbers of batches (" + skips +
                                    "): their reductions pair up with other steps' from there on");
  finding.help = "All-reduce the flag first, so that all ranks skip together.";
}

Price price_rank_local_skip_or_break(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  const std::vector<int> hung = broken.hung_ranks();
  price.reproduced = !unequal_skips(broken).empty() && !hung.empty();
  price.gone =
      unequal_skips(cured).empty() && cured.hung_ranks().empty() && cured.number("steps") > 0;
  price.cost = broken.document().value("limit_seconds", 0.0);
  price.unit = "s hung until the time-out, after steps reduced with the wrong partner";
  if (!hung.empty())
    price.seen = "silent wrong reductions, then rank " + std::to_string(hung.front()) +
                 " hangs in its last step";
  return price;
}

}  // namespace bench::pitfalls
