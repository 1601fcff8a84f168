#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"
#include "scenarios/pitfalls/judges.hpp"

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

bool depends_on_local_data(std::string_view condition) {
  const std::string text = facts::lowered(condition);
  for (const std::string_view word : {"isnan", "isfinite", "isinf", "is_nan"})
    if (facts::contains(text, word)) return true;
  return false;
}

bool stops_early(std::string_view condition) {
  const std::string text = facts::lowered(condition);
  for (const std::string_view word :
       {"early_stop", "earlystop", "patience", "should_stop", "no_improve"})
    if (facts::contains(text, word)) return true;
  return false;
}

bool agrees_between_ranks(const Program& program) {
  return program.uses(Api::all_reduce) || program.uses(Api::broadcast) ||
         program.uses(Api::all_gather) || program.uses(Api::reduce);
}

bool catches_out_of_memory(Ref statement) {
  const auto& tree = statement.module->tree();
  const NodeId handler = tree.ancestor(statement.node, Kind::except_clause);
  return handler != kNoNode && (facts::contains(tree.text(handler), "out of memory") ||
                                facts::contains(tree.text(handler), "OutOfMemory"));
}

}  // namespace

void check_rank_local_skip_or_break(const Program& program, Report& report) {
  if (!program.has_ddp() || program.framework_distributes() || agrees_between_ranks(program))
    return;
  for (const TrainingLoop& loop : program.training_loops())
    for (const Kind kind : {Kind::continue_statement, Kind::break_statement})
      for (const Module* module : program.modules())
        for (const NodeId node : module->nodes_of(kind)) {
          const Ref statement{module, node};
          const Ref around = program.innermost_loop(statement);
          if (around != loop.batches && around != loop.epochs) continue;
          std::string why;
          if (catches_out_of_memory(statement)) why = "after running out of memory";
          for (const Guard& guard : program.guards(statement)) {
            if (!module->tree().contains(around.node, guard.condition.node)) continue;
            if (depends_on_local_data(guard.condition.text()))
              why = "on a loss that only this rank sees";
            if (around == loop.epochs && stops_early(guard.condition.text()) &&
                program.guarded_by_rank(statement) == RankTest::none)
              why = "on a metric of this rank";
          }
          if (why.empty()) continue;
          report
              .at(statement, Confidence::likely,
                  std::string(kind == Kind::continue_statement ? "continue " : "break ") + why +
                      ": the other ranks go on, so collectives pair up one step off or hang")
              .help =
              "All-reduce the condition first, so that every rank decides alike; or zero the loss "
              "and call backward all the same.";
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
