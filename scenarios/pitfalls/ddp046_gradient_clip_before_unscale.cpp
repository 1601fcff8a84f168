#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/frameworks/lightning_steps.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/laboratory/paired_loss.hpp"
#include "scenarios/pitfalls/laboratory/trial_prices.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/reach/idle_scaler.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::FunctionRef;

namespace {

// clip_gradients(model.parameters(), limit) of a file that is not there.
bool clips_elsewhere(const Program& program, const CallRef& call) {
  const std::string name = facts::lowered(call.call->name);
  if (call.call->api != Api::none || !facts::contains(name, "clip") ||
      !facts::contains(name, "grad"))
    return false;
  const CallRef given = program.made_by(call.positional(0));
  return given && given.call->name == "parameters" && !program.callee(call);
}

// def clip(parameters): if limit > 0: clip_grad_norm_(parameters, limit), which neither unscales
// nor trains: the call of such a helper clips.
bool only_clips(FunctionRef helper) {
  const auto calls = facts::calls_in({helper.module, helper.function->body});
  return std::none_of(calls.begin(), calls.end(), [](const CallRef& call) {
    const std::string_view name = call.call->name;
    return name == "backward" || name == "step" || facts::contains(name, "unscale");
  });
}

std::vector<CallRef> clips_of(const Program& program) {
  const auto known = program.calls(Api::clip_grad);
  std::vector<CallRef> out(known.begin(), known.end());
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Call& call : module->calls())
      if (clips_elsewhere(program, {module, &call})) out.push_back({module, &call});
  for (const CallRef& clip : known)
    if (const FunctionRef helper = program.enclosing_function(clip.ref());
        helper && only_clips(helper))
      for (const CallRef& site : program.call_sites(helper)) out.push_back(site);
  return out;
}

// with amp.scale_loss(loss, optimizer) as scaled: scaled.backward(); clip_grad_norm_(...): apex
// divides the gradients by the scale where it leaves the context (apex/amp/handle.py).
void check_apex_contexts(const Program& program, Report& report) {
  const auto scales = [&](Ref item) {
    const CallRef context = program.as_call(item);
    return context && context.call->name == "scale_loss";
  };
  if (program.calls_named("scale_loss").empty()) return;
  for (const CallRef& clip : program.calls(Api::clip_grad)) {
    const Ref context = program.enclosing_with(clip.ref(), scales);
    if (!context) continue;
    const auto backwards = program.calls_named("backward");
    const bool above =
        std::any_of(backwards.begin(), backwards.end(), [&](const CallRef& backward) {
          return backward.module == clip.module && backward.call->node < clip.call->node &&
                 program.enclosing_with(backward.ref(), scales) == context;
        });
    if (!above) continue;
    Finding& finding = report.at(
        clip.ref(), Confidence::certain,
        "gradients are clipped inside of scale_loss, which divides them by the loss scale where it "
        "ends: the threshold is thousands of times too small");
    finding.help = "Clip behind the with statement.";
  }
}

// manual_backward(loss); clip_grad_norm_(...); optimizer.step() of a LightningModule: Lightning
// unscales in step() (lightning/pytorch/plugins/precision/amp.py, optimizer_step).
void check_manual_clips(const Program& program, Report& report) {
  for (const CallRef& clip : manual_clips_of_scaled(program))
    report
        .at(clip.ref(), Confidence::likely,
            "gradients are clipped while they are still multiplied by the loss scale, which "
            "Lightning takes away in the optimizer's step(): the threshold is thousands of times "
            "too small")
        .help =
        "Call self.trainer.precision_plugin.scaler.unscale_(optimizer) before clipping, or train "
        "with precision=\"bf16-mixed\".";
}

}  // namespace

void check_gradient_clip_before_unscale(const Program& program, Report& report) {
  check_manual_clips(program, report);
  check_apex_contexts(program, report);
  if (program.calls_named("scale").empty()) return;
  for (const CallRef& clip : clips_of(program)) {
    const FunctionRef function = program.enclosing_function(clip.ref());
    const auto here = [&](const CallRef& call) {
      return call.module == clip.module && program.enclosing_function(call.ref()) == function;
    };
    CallRef scaled;
    for (const CallRef& backward : program.calls_named("backward")) {
      const CallRef scale = program.made_by(backward.receiver());
      if (scale && scale.call->name == "scale" && here(backward) &&
          backward.call->node < clip.call->node && !facts::exclusive(backward.ref(), clip.ref()))
        scaled = backward;
    }
    if (!scaled) continue;
    bool unscaled = false;
    for (const CallRef& unscale : program.calls_named("unscale_"))
      unscaled = unscaled || (here(unscale) && unscale.call->node < clip.call->node);
    for (const CallRef& unscale : program.calls_named("unscale"))
      unscaled = unscaled || here(unscale);
    bool steps = false;
    for (const CallRef& step : program.calls_named("step"))
      steps = steps || (here(step) && step.call->node > clip.call->node && step.positional(0));
    if (unscaled || !steps) continue;
    Finding& finding = report.at(
        clip.ref(), Confidence::certain,
        "gradients are clipped while they are still multiplied by the loss scale: the threshold is "
        "thousands of times too small");
    finding.help = "Call scaler.unscale_(optimizer) before clipping.";
    tell_as_note(finding, facts::no_scaler_switched_on(program, clip.ref()));
  }
}

namespace {

// Clipping looked at gradients that still carried the loss scale.
bool clipped_scaled(const RunEvidence& run) {
  const double seen = run.number("norm_seen_by_clip") / run.number("gradient_norm");
  return seen > 2 && std::fabs(seen / run.number("loss_scale") - 1) < 0.01;
}

}  // namespace

void judge_gradient_clip_before_unscale(const RunEvidence& run, RunReport& report) {
  if (!clipped_scaled(run)) return;
  Finding& finding = report.add(Confidence::certain,
                                "gradients were clipped while they carried the loss scale of " +
                                    figure(run.number("loss_scale")) + ": clipping saw a norm of " +
                                    figure(run.number("norm_seen_by_clip")) + " where it is " +
                                    figure(run.number("gradient_norm"), 3));
  finding.help = "Call scaler.unscale_(optimizer) before clip_grad_norm_.";
  finding.evidence.emplace_back("norm that was applied", Json(run.number("norm_applied")).dump());
}

Price price_gradient_clip_before_unscale(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  const Interval lost = paired_loss(broken.first("accuracy"), cured.first("accuracy"));
  price.reproduced = clipped_scaled(broken) && lost.low > 0;
  price.gone = cured.first("accuracy") != nullptr && !clipped_scaled(cured);
  price.cost = 100 * lost.mean;
  price.unit = "accuracy points lost (95 % interval " + figure(100 * lost.low, 2) + " to " +
               figure(100 * lost.high, 2) + ", " + std::to_string(lost.seeds) + " seeds)";
  price.seen = "silent: the norm that is applied is " + figure(broken.number("norm_applied"), 7) +
               ", and nothing is learned";
  return price;
}

}  // namespace bench::pitfalls
