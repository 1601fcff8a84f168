#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/frameworks/horovod_models.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/reach/order.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Guard;

namespace {

// The gradients are computed under the same condition as the step: nothing is added up.
bool guards_backward(const Program& program, const CallRef& step, const Guard& guard) {
  const auto& backwards = facts::training_loop_of(program, step.ref())->backwards;
  return std::any_of(backwards.begin(), backwards.end(), [&](const CallRef& backward) {
    const auto guards = program.guards(backward.ref());
    return std::find(guards.begin(), guards.end(), guard) != guards.end();
  });
}

// optimizer.step(), or scaler.step(optimizer): the optimizer.
Ref stepped(const CallRef& step) {
  const Ref given = step.positional(0);
  return given && facts::contains(facts::lowered(step.receiver().text()), "scal") ? given
                                                                                  : step.receiver();
}

// The step of an optimizer, and of no schedule, logger or weights that are restored.
bool is_of_optimizer(const Program& program, const CallRef& step) {
  const Ref optimizer = stepped(step);
  return program.comes_from(optimizer, Api::hvd_optimizer) ||
         facts::contains(facts::lowered(optimizer.text()), "opt");
}

// optimizer.synchronize() below the backward pass of every micro-batch: Horovod counts anew.
bool synchronises_each_pass(const Program& program, const CallRef& step) {
  const auto* loop = facts::training_loop_of(program, step.ref());
  const auto waits = program.calls_named("synchronize");
  return std::any_of(waits.begin(), waits.end(), [&](const CallRef& wait) {
    return wait.receiver() && wait.receiver().text() == stepped(step).text() &&
           wait.module == step.module && facts::training_loop_of(program, wait.ref()) == loop &&
           std::any_of(loop->backwards.begin(), loop->backwards.end(), [&](const CallRef& pass) {
             return pass.module == wait.module && pass.call->node < wait.call->node &&
                    runs_wherever(program, wait.ref(), pass.ref());
           });
  });
}

bool is_in_round_of(const Program& program, Ref node, Ref step) {
  return node.module == step.module &&
         program.enclosing_function(node) == program.enclosing_function(step) &&
         program.innermost_loop(node) == program.innermost_loop(step);
}

// The gradients that the step applies are computed below synchronize(), and none above it.
bool waits_before_backward(const Program& program, const CallRef& wait, const CallRef& step) {
  bool below = false;
  for (const CallRef& backward : program.calls_named("backward")) {
    if (!is_in_round_of(program, backward.ref(), step.ref())) continue;
    if (backward.call->node < wait.call->node) return false;
    below = below || backward.call->node < step.call->node;
  }
  return below;
}

// synchronize() at the head of a round: nothing is on its way, so it begins reductions of whatever
// gradients there are.
void tell_old_gradients(const Program& program, const CallRef& wait, const CallRef& step,
                        Report& report) {
  if (!program.innermost_loop(step.ref()) || !runs_wherever(program, step.ref(), wait.ref()))
    return;
  Finding& finding = report.at(wait.ref(), Confidence::likely,
                               "synchronize() stands above the backward pass: it reduces the last "
                               "step's gradients, which step() has reduced, once more");
  finding.severity = Severity::warning;
  finding.help = "Delete it: step() waits for the reductions itself.";
}

// step() waits for the gradients' reductions itself. With nothing left to wait for, synchronize()
// reduces all of them once more, and so does a step() below it that is not told to skip.
void check_synchronised_twice(const Program& program, Report& report) {
  for (const CallRef& step : program.calls_named("step")) {
    const Ref optimizer = stepped(step);
    if (!optimizer || !program.comes_from(optimizer, Api::hvd_optimizer)) continue;
    const bool skips = static_cast<bool>(program.enclosing_with(
        step.ref(), [](Ref item) { return facts::contains(item.text(), "skip_synchronize"); }));
    for (const CallRef& wait : program.calls_named("synchronize")) {
      if (skips || !wait.receiver() || wait.receiver().text() != optimizer.text() ||
          wait.module != step.module || !facts::is_reachable(program, wait.ref()) ||
          program.innermost_loop(wait.ref()) != program.innermost_loop(step.ref()) ||
          program.enclosing_function(wait.ref()) != program.enclosing_function(step.ref()) ||
          facts::exclusive(wait.ref(), step.ref()))
        continue;
      const bool below = step.call->node < wait.call->node;
      if (!below && waits_before_backward(program, wait, step)) {
        tell_old_gradients(program, wait, step, report);
        return;
      }
      Finding& finding =
          report.at(below ? wait.ref() : step.ref(), Confidence::likely,
                    below ? "step() above has reduced the gradients: synchronize() reduces all of "
                            "them a second time"
                          : "synchronize() above has reduced the gradients: step() reduces all of "
                            "them a second time");
      finding.severity = Severity::warning;
      finding.help =
          "synchronize() first, then step() under `with optimizer.skip_synchronize():`; or step() "
          "alone.";
      return;
    }
  }
}

// Gradients of the loss reach the model.
bool goes_through(const Program& program, Ref loss, const std::vector<Ref>& models) {
  const auto behind = facts::calls_behind(program, loss);
  return std::any_of(behind.begin(), behind.end(), [&](Ref call) {
    const Ref called = call.child(diagnose::Field::function);
    return called && called.kind() == diagnose::Kind::identifier && !program.under_no_grad(call) &&
           std::any_of(models.begin(), models.end(),
                       [&](Ref model) { return same_model(program, called, model); });
  });
}

// The first step() or synchronize() below, in the same function and loop.
CallRef next_step(const Program& program, const CallRef& backward) {
  CallRef next;
  for (const std::string_view name : {"step", "synchronize"})
    for (const CallRef& call : program.calls_named(name))
      if (call.module == backward.module && call.call->node > backward.call->node &&
          program.innermost_loop(call.ref()) == program.innermost_loop(backward.ref()) &&
          program.enclosing_function(call.ref()) == program.enclosing_function(backward.ref()) &&
          (!next || call.call->node < next.call->node))
        next = call;
  return next;
}

// loss_real.backward(), loss_fake.backward() and one step(), as GANs do: the hook of a parameter
// finds the reduction that the first pass has begun, and raises.
void check_passes_of_one_step(const Program& program, const CallRef& made, Report& report) {
  const std::vector<Ref> models = models_of_horovod_optimizer(program, made);
  if (models.empty()) return;
  for (const diagnose::TrainingLoop& loop : program.training_loops())
    for (const CallRef& first : loop.backwards)
      for (const CallRef& second : loop.backwards) {
        if (first.module != second.module || first.call->node >= second.call->node ||
            program.enclosing_function(first.ref()) != program.enclosing_function(second.ref()) ||
            program.innermost_loop(first.ref()) != program.innermost_loop(second.ref()) ||
            facts::exclusive(first.ref(), second.ref()) ||
            !(runs_wherever(program, first.ref(), second.ref()) ||
              runs_wherever(program, second.ref(), first.ref())))
          continue;
        const CallRef step = next_step(program, second);
        if (!step || step.call->name != "step" || next_step(program, first).ref() != step.ref() ||
            program.origin(stepped(step), Api::hvd_optimizer).call != made.call ||
            !runs_wherever(program, step.ref(), second.ref()) ||
            !facts::is_reachable(program, second.ref()) ||
            !goes_through(program, facts::loss_of(first), models) ||
            !goes_through(program, facts::loss_of(second), models))
          continue;
        report
            .at(second.ref(), Confidence::likely,
                "a second backward pass before step(), and backward_passes_per_step is not set: "
                "AssertionError, gradients were computed more than once before step()")
            .help = "Add the losses and call backward() once, or pass backward_passes_per_step.";
        return;
      }
}

// for x, y in task: loss.backward(); inner.step(): what the loop adds up is taken there.
bool steps_below(const Program& program, const CallRef& backward, Ref loop) {
  const auto steps = program.calls_named("step");
  return std::any_of(steps.begin(), steps.end(), [&](const CallRef& step) {
    return step.module == loop.module && step.call->node > backward.call->node &&
           loop.module->tree().contains(loop.node, step.call->node);
  });
}

// for part in parts: loss.backward(), and one step() below that loop.
bool passes_often_for_one_step(const Program& program, const CallRef& step) {
  const Ref around = program.innermost_loop(step.ref());
  for (const CallRef& backward : program.calls_named("backward")) {
    const Ref inner = program.innermost_loop(backward.ref());
    if (!around || !inner || inner == around || backward.module != step.module ||
        backward.call->node > step.call->node ||
        program.enclosing_function(backward.ref()) != program.enclosing_function(step.ref()) ||
        program.innermost_loop(inner) != around || steps_below(program, backward, inner) ||
        !facts::is_reachable(program, step.ref()))
      continue;
    if (runs_wherever(program, step.ref(), inner)) return true;
  }
  return false;
}

// optimizer.synchronize() above the node, or above every call of the helper that it stands in.
bool is_synchronised_above(const Program& program, Ref node, int depth = 0) {
  const auto function = program.enclosing_function(node);
  for (const CallRef& call : program.calls_named("synchronize"))
    if (call.module == node.module && call.call->node < node.node &&
        program.enclosing_function(call.ref()) == function && call.call->api == Api::none)
      return true;
  if (!function || depth > 2) return false;
  const auto& sites = program.call_sites(function);
  return !sites.empty() && std::all_of(sites.begin(), sites.end(), [&](const CallRef& site) {
    return is_synchronised_above(program, site.ref(), depth + 1);
  });
}

// A training step of its own, def train_on_batch(): backward() above, and step() of Horovod's
// optimizer below.
bool stands_between_passes_and_step(const Program& program, const CallRef& clip) {
  const auto function = program.enclosing_function(clip.ref());
  const auto is_beside = [&](const CallRef& call) {
    return function && call.module == clip.module &&
           program.enclosing_function(call.ref()) == function;
  };
  const auto passes = program.calls_named("backward");
  const auto steps = program.calls_named("step");
  return std::any_of(passes.begin(), passes.end(),
                     [&](const CallRef& pass) {
                       return is_beside(pass) && pass.call->node < clip.call->node;
                     }) &&
         std::any_of(steps.begin(), steps.end(), [&](const CallRef& step) {
           const Ref optimizer = stepped(step);
           return optimizer && is_beside(step) && step.call->node > clip.call->node &&
                  program.comes_from(optimizer, Api::hvd_optimizer);
         });
}

void tell_accumulation(const CallRef& made, Report& report) {
  report
      .at(made.ref(), Confidence::likely,
          "gradients are accumulated but backward_passes_per_step is not set: "
          "AssertionError, gradients were computed more than once before step()")
      .help = "Pass backward_passes_per_step=N.";
}

}  // namespace

void check_horovod_accumulation_and_clip(const Program& program, Report& report) {
  if (!program.uses(Api::hvd_optimizer)) return;
  check_synchronised_twice(program, report);
  for (const CallRef& clip : program.calls(Api::clip_grad)) {
    if (is_synchronised_above(program, clip.ref()) ||
        (facts::training_loop_of(program, clip.ref()) == nullptr &&
         !stands_between_passes_and_step(program, clip)) ||
        !facts::is_reachable(program, clip.ref()))
      continue;
    report
        .at(clip.ref(), Confidence::certain,
            "gradients are clipped before Horovod has reduced them: each rank clips its own")
        .help = "optimizer.synchronize(), then clip, then step under optimizer.skip_synchronize().";
  }
  for (const CallRef& made : program.calls(Api::hvd_optimizer)) {
    if (made.keyword("backward_passes_per_step") || made.has_splat()) continue;
    check_passes_of_one_step(program, made, report);
    for (const CallRef& step : program.calls_named("step")) {
      if (step.receiver() && program.origin(stepped(step), Api::hvd_optimizer).call == made.call &&
          passes_often_for_one_step(program, step)) {
        tell_accumulation(made, report);
        return;
      }
      if (!step.receiver() || facts::training_loop_of(program, step.ref()) == nullptr ||
          !is_of_optimizer(program, step))
        continue;
      for (const Guard& guard : program.guards(step.ref())) {
        if (!facts::contains(guard.condition.text(), "%") ||
            guards_backward(program, step, guard) || synchronises_each_pass(program, step))
          continue;
        tell_accumulation(made, report);
        return;
      }
    }
  }
}

}  // namespace bench::pitfalls
