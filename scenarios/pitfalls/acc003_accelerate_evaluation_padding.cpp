#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"

namespace bench::pitfalls {

using diagnose::Api;

namespace {

// The function hands predictions to a metric, or counts the right ones itself.
bool counts_something(std::string_view function) {
  for (const char* word : {"add_batch(", "correct", "accuracy", "metric"})
    if (facts::contains(function, word)) return true;
  return false;
}

}  // namespace

void check_accelerate_evaluation_padding(const Program& program, Report& report) {
  if (!program.uses(Api::accelerator)) return;
  const std::string_view accelerator =
      program.assigned_name(program.calls(Api::accelerator).front().ref());
  for (const CallRef& gather : program.calls_named("gather")) {
    if (!gather.receiver() || gather.receiver().text() != accelerator) continue;
    const Ref value = gather.positional(0);
    const auto function = program.enclosing_function(gather.ref());
    if (function && function.function->name.starts_with("test_") &&
        !program.under_no_grad(gather.ref()))
      continue;  // a unit test
    // Losses are averaged, for which a repeated sample hardly matters; predictions are counted.
    if (!value || facts::contains(facts::lowered(value.text()), "loss") ||
        !program.is_evaluation(gather.ref()) ||
        facts::training_loop_of(program, gather.ref()) != nullptr)
      continue;
    // gather(samples)[:n] keeps as many as were asked for.
    const auto& tree = gather.module->tree();
    const auto parent = tree[gather.call->node].parent;
    if (tree[parent].kind == diagnose::Kind::subscript) continue;
    // predictions[: len(loader.dataset) - seen] cuts the repeated ones off by hand.
    const auto& module = *gather.module;
    if (facts::contains(module.text(module.function_of(gather.call->node)), ".dataset)")) continue;
    Finding& finding = report.at(
        gather.ref(), Confidence::likely,
        "gather keeps the samples that were repeated to make the last batches equal: they "
        "count twice in the metric");
    if (!counts_something(module.text(module.function_of(gather.call->node))))
      tell_as_note(finding);
    finding.help = "Use accelerator.gather_for_metrics.";
  }
  for (const CallRef& made : program.calls(Api::accelerator)) {
    const Ref even = made.keyword("even_batches");
    if (even && program.is_literal_false(even) && program.calls_named("join_uneven_inputs").empty())
      report
          .at(even, Confidence::likely,
              "even_batches=False without join_uneven_inputs: the job hangs at the end of an epoch")
          .help = "Train under accelerator.join_uneven_inputs([model]).";
  }
}

}  // namespace bench::pitfalls
