#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/edits.hpp"
#include "scenarios/pitfalls/facts.hpp"
#include "scenarios/pitfalls/loaders.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Kind;
using diagnose::Source;
using diagnose::TrainingLoop;

namespace {

// The Accelerator is made where the step runs, in a caller, or for the whole file or object. A
// function that has none beside one that does is a comparison, not a mistake.
bool is_in_use(const Program& program, Ref node, const CallRef& made, int depth = 0) {
  constexpr int kCalls = 4;
  const auto maker = program.enclosing_function(made.ref());
  if (!maker || program.assigned_name(made.ref()).find('.') != std::string_view::npos) return true;
  if (node.module == maker.module && node.module->tree().contains(maker.function->node, node.node))
    return true;
  const auto function = program.enclosing_function(node);
  if (!function || depth > kCalls) return false;
  for (const CallRef& site : program.call_sites(function))
    if (is_in_use(program, site.ref(), made, depth + 1)) return true;
  return false;
}

// What prepare() returned is trained here; in a program without prepare(), the Accelerator is near.
bool routes_here(const Program& program, Ref node, const CallRef& made) {
  const auto prepares = program.calls_named("prepare");
  if (prepares.empty()) return is_in_use(program, node, made);
  return std::any_of(prepares.begin(), prepares.end(),
                     [&](const CallRef& prepare) { return is_in_use(program, node, prepare); });
}

// The data set picks its own part by the rank of the process: `idx % accelerator.num_processes`.
bool is_split_by_hand(const Program& program, const CallRef& loader) {
  const Ref dataset = loader.argument(0, "dataset");
  if (!dataset) return false;
  const auto tells_ranks = [](std::string_view text) {
    return facts::contains(text, "process_index") || facts::contains(text, "get_rank(") ||
           facts::contains(text, "split_dataset_by_node");
  };
  const diagnose::ClassRef cls = program.class_of(dataset);
  if (cls && tells_ranks(cls.module->text(cls.cls->node))) return true;
  const auto calls = facts::calls_behind(program, dataset);
  return std::any_of(calls.begin(), calls.end(),
                     [&](const Ref& call) { return tells_ranks(call.text()); });
}

// optimizer = AdamW(model.parameters()), where the optimizer is prepared and the model nowhere.
Ref unprepared_model(const Program& program, const CallRef& prepare) {
  const auto is_given = [&](std::string_view name) {
    for (const char* method : {"prepare", "prepare_model"})
      for (const CallRef& each : program.calls_named(method))
        for (std::size_t i = 0; const Ref argument = each.positional(i); ++i)
          if (argument.kind() != Kind::identifier || argument.text() == name) return true;
    return false;
  };
  for (std::size_t i = 0; const Ref argument = prepare.positional(i); ++i)
    for (const Source& source : program.sources(argument)) {
      const CallRef optimizer = program.as_call(source.ref);
      const CallRef parameters = optimizer ? program.as_call(optimizer.positional(0)) : CallRef{};
      if (!parameters || parameters.call->name != "parameters" ||
          parameters.receiver().kind() != Kind::identifier ||
          program.enclosing_function(optimizer.ref()) != program.enclosing_function(prepare.ref()))
        continue;
      if (!is_given(parameters.receiver().text())) return argument;
    }
  return {};
}

// train_loader, val_loader = make(config) of a file that is not at hand: one is prepared, and the
// loop reads the other.
CallRef preparation_of_sibling(const Program& program, Ref iterable) {
  const Ref loader = program.strip_iterable(iterable);
  for (const Source& mine : program.sources(loader)) {
    if (mine.how != Source::How::element || program.callee(program.as_call(mine.ref))) continue;
    CallRef sibling;
    for (const CallRef& prepare : program.calls_named("prepare"))
      for (std::size_t i = 0; const Ref argument = prepare.positional(i); ++i) {
        if (argument.kind() != Kind::identifier || argument.text() == loader.text()) return {};
        for (const Source& other : program.sources(argument)) {
          if (other.ref != mine.ref || other.how != Source::How::element) continue;
          if (other.element == mine.element) return {};
          sibling = prepare;
        }
      }
    if (sibling) return sibling;
  }
  return {};
}

void check_sibling_of_prepared(const Program& program, Ref iterable, Report& report) {
  const CallRef prepare = preparation_of_sibling(program, iterable);
  if (!prepare) return;
  report
      .at(prepare.ref(), Confidence::likely,
          "the loader beside the training loader is passed to accelerator.prepare(), the training "
          "loader is not: every process reads all the data")
      .help = "Pass it to prepare() with the model and the optimizer.";
}

// The model is trained through Accelerate, which has not seen it: gradients are not reduced.
void check_unprepared_model(const Program& program, Report& report) {
  if (program.training_loops().empty()) return;
  for (const CallRef& prepare : program.calls_named("prepare")) {
    if (!prepare.receiver() || !facts::contains(facts::lowered(prepare.receiver().text()), "accel"))
      continue;
    const Ref optimizer = unprepared_model(program, prepare);
    if (!optimizer) continue;
    report
        .at(prepare.ref(), Confidence::likely,
            "the optimizer is passed to accelerator.prepare() and its model is not: gradients are "
            "not reduced, and every process trains a model of its own")
        .help = "Pass the model to prepare() too, and use what it returns.";
  }
}

// Steps under a test of its own: if (i + 1) % config.accumulation == 0.
bool steps_by_hand(const Program& program) {
  const auto steps = program.calls_named("step");
  return std::any_of(steps.begin(), steps.end(), [&](const CallRef& step) {
    const auto guards = program.guards(step.ref());
    return std::any_of(guards.begin(), guards.end(), [](const diagnose::Guard& guard) {
      return facts::contains(guard.condition.text(), "%");
    });
  });
}

// Accelerator(gradient_accumulation_steps=n) counts only under accumulate(); without it
// sync_gradients is true in every step.
void check_accumulation(const Program& program, const CallRef& made, Report& report) {
  const Ref given = made.keyword("gradient_accumulation_steps");
  if (!given || made.keyword("deepspeed_plugin") || program.mentions("DeepSpeedPlugin") ||
      !program.calls_named("accumulate").empty())
    return;
  for (const char* word : {"no_sync", "_do_sync", "set_sync_gradients", ".sync_gradients ="})
    if (program.mentions(word)) return;  // DeepSpeed's engine counts the steps itself
  const diagnose::Value steps = program.evaluate(given);
  const bool known = steps.is_integer();
  // A number that comes from elsewhere is meant to be set.
  const bool open = !known && !program.training_loops().empty() &&
                    given.kind() == Kind::attribute && !steps_by_hand(program);
  if (known ? steps.integer <= 1 : !open) return;
  Finding& finding = report.at(given, known ? Confidence::certain : Confidence::likely,
                               "gradient_accumulation_steps has no effect without `with "
                               "accelerator.accumulate(model):`");
  if (!known) finding.severity = Severity::warning;
  finding.help = "Put the body of the loop under accelerator.accumulate(model).";
}

}  // namespace

void check_accelerate_step_not_routed(const Program& program, Report& report) {
  if (!program.uses(Api::accelerator)) return;
  const CallRef made = program.calls(Api::accelerator).front();
  const std::string_view accelerator = program.assigned_name(made.ref());
  for (const TrainingLoop& loop : program.training_loops()) {
    for (const CallRef& backward : loop.backwards) {
      if (backward.positional(0) || !backward.receiver() ||
          !routes_here(program, backward.ref(), made))
        continue;
      const std::string_view receiver = backward.receiver().text();
      if (receiver == accelerator || facts::contains(receiver, "accelerator") ||
          facts::contains(receiver, "scale("))
        continue;
      Finding& finding = report.at(backward.ref(), Confidence::certain,
                                   "loss.backward() goes round Accelerate: no loss scaling and no "
                                   "division for accumulation");
      finding.help = "Call accelerator.backward(loss).";
      if (!accelerator.empty() && accelerator.find('.') == std::string_view::npos)
        replace(backward.ref(),
                std::string(accelerator) + ".backward(" + std::string(receiver) + ")",
                "Route it through Accelerate", finding);
    }
    // A loop beside it whose backward pass is PyTorch's own is no business of Accelerate.
    const bool steps_with_it =
        std::any_of(loop.backwards.begin(), loop.backwards.end(), [&](const CallRef& backward) {
          return backward.positional(0) || routes_here(program, backward.ref(), made);
        });
    if (steps_with_it) check_sibling_of_prepared(program, loop.iterable, report);
    if (steps_with_it && !program.calls_named("prepare").empty())
      for (const CallRef& loader : loaders_of(program, loop.iterable)) {
        const std::string_view name = program.assigned_name(loader.ref());
        bool prepared = false;
        for (const char* method : {"prepare", "prepare_data_loader"})
          for (const CallRef& prepare : program.calls_named(method))
            for (std::size_t i = 0; const Ref argument = prepare.positional(i); ++i) {
              prepared = prepared || argument.text() == name ||
                         argument.kind() == Kind::list_splat || argument.kind() != Kind::identifier;
              for (const Source& source : program.sources(argument))
                prepared = prepared || source.ref == loader.ref() ||
                           (name.empty() && source.how != Source::How::value);
            }
        if (prepared || is_split_by_hand(program, loader)) continue;
        report
            .at(loader.ref(), Confidence::likely,
                "the training loader is not passed to accelerator.prepare(): every process reads "
                "all the data")
            .help = "Pass it to prepare() with the model and the optimizer.";
      }
  }
  check_unprepared_model(program, report);
  check_accumulation(program, made, report);
  for (const CallRef& clip : program.calls(Api::clip_grad))
    if (program.string(made.keyword("mixed_precision")).value_or("") == "fp16")
      report
          .at(clip.ref(), Confidence::likely,
              "gradients are clipped while they are scaled for fp16")
          .help = "Call accelerator.clip_grad_norm_.";
}

}  // namespace bench::pitfalls
