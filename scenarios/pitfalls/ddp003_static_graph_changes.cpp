#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/laboratory/trial_prices.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/reach/order.hpp"

namespace bench::pitfalls {

using diagnose::ClassRef;
using diagnose::Def;
using diagnose::FunctionRef;
using diagnose::Guard;
using diagnose::TrainingLoop;
using diagnose::Wrap;
using diagnose::Wrapper;

namespace {

bool tests_changing_state(std::string_view condition) {
  // Not self.training: it is true in every step that has a backward pass.
  for (const std::string_view word : {"epoch", "step", "iteration", "self.iter"})
    if (facts::contains(condition, word)) return true;
  return false;
}

}  // namespace

void check_static_graph_changes(const Program& program, Report& report) {
  for (const Wrap& wrap : program.wraps()) {
    if (wrap.kind != Wrapper::ddp || !program.is_literal_true(wrap.call.keyword("static_graph")))
      continue;
    for (const ClassRef& cls : wrap.classes)
      for (const FunctionRef& method : facts::forward_methods(program, cls))
        for (const CallRef& call : facts::calls_in({method.module, method.function->body})) {
          const Ref receiver{call.module, call.call->function};
          if (!receiver.text().starts_with("self.")) continue;
          for (const Guard& guard : program.guards(call.ref()))
            if (tests_changing_state(guard.condition.text())) {
              report
                  .at(call.ref(), Confidence::likely,
                      "with static_graph=True the same layers must run in every step, but this one "
                      "depends on `" +
                          std::string(guard.condition.text()) + "`")
                  .help = "Leave static_graph out.";
              break;
            }
        }
    for (const TrainingLoop& loop : program.training_loops()) {
      const Ref around = loop.epochs ? loop.epochs : loop.batches;
      // A search over settings, say: each round builds and wraps a model of its own.
      if (runs_in(program, around, wrap.call.ref())) continue;
      for (const std::uint32_t index : around.module->defs_of("requires_grad", true)) {
        const Def& def = around.module->defs()[index];
        if (runs_in(program, around, around.with(def.target)))
          in_no_trial(
              report.at(around.with(def.target), Confidence::certain,
                        "freezing or unfreezing in the training loop changes the graph, which "
                        "static_graph=True forbids"))
              .help = "Leave static_graph out, or wrap the model again after the change.";
      }
    }
  }
}

namespace {

constexpr std::string_view kGraphChanged = "not compatible with static_graph";

}  // namespace

void judge_static_graph_changes(const RunEvidence& run, RunReport& report) {
  const std::string error = run.error_with(kGraphChanged);
  if (error.empty()) return;
  Finding& finding = report.add(Confidence::certain,
                                "static_graph is on, and a later step used other parameters than "
                                "the first");
  finding.help = "Leave static_graph out where the graph changes, or wrap again after the change.";
  finding.evidence.emplace_back("error", error);
}

Price price_static_graph_changes(const RunEvidence& broken, const RunEvidence& cured) {
  Price price = price_of_crash(broken, cured, kGraphChanged);
  price.seen =
      "RuntimeError: ... your training graph has changed in this iteration ... not "
      "compatible with static_graph set to True";
  return price;
}

}  // namespace bench::pitfalls
