#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/edits.hpp"
#include "scenarios/pitfalls/facts.hpp"

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Wrap;
using diagnose::Wrapper;

namespace {

bool searches_for_unused(const Program& program) {
  for (const Wrap& wrap : program.wraps())
    if (wrap.kind == Wrapper::ddp &&
        program.is_literal_true(wrap.call.keyword("find_unused_parameters")))
      return true;
  return false;
}

}  // namespace

void check_reentrant_checkpoint(const Program& program, Report& report) {
  for (const CallRef& call : program.calls(Api::checkpoint)) {
    if (!program.has_ddp()) break;
    const Ref flag = call.keyword("use_reentrant");
    if (flag && !program.is_literal_true(flag)) continue;
    if (!flag && call.has_splat() && !call.positional(0)) continue;
    // An option decides, and it may be off.
    const bool optional = program.under(call.ref(), [](Ref condition, bool holds) {
      const std::string_view text = condition.text();
      return holds && text != "self.training" && !text.starts_with("torch.is_grad_enabled");
    });
    const bool unused =
        searches_for_unused(program) && !optional && !facts::only_evaluates(program);
    Finding& finding =
        report.at(call.ref(), unused ? Confidence::certain : Confidence::check,
                  unused ? "re-entrant checkpointing with find_unused_parameters=True: \"Expected "
                           "to mark a variable ready only once\""
                         : "re-entrant checkpointing under DDP fails when a layer is checkpointed "
                           "twice or weights are shared");
    if (!unused) finding.severity = Severity::info;
    finding.help = "Pass use_reentrant=False.";
    if (!flag)
      add_argument(call, "use_reentrant=False", "Checkpoint without re-entering autograd", finding);
  }
  for (const CallRef& arguments : program.calls(Api::hf_training_arguments))
    if (program.is_literal_true(arguments.keyword("gradient_checkpointing")) &&
        program.is_literal_true(arguments.keyword("ddp_find_unused_parameters")) &&
        !arguments.keyword("gradient_checkpointing_kwargs"))
      report
          .at(arguments.keyword("gradient_checkpointing"), Confidence::likely,
              "gradient_checkpointing with ddp_find_unused_parameters=True: parameters are marked "
              "ready twice")
          .help =
          "Set ddp_find_unused_parameters=False, or "
          "gradient_checkpointing_kwargs={\"use_reentrant\": False}.";
}

}  // namespace bench::pitfalls
