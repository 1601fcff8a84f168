#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::FunctionRef;

void check_gradient_clip_before_unscale(const Program& program, Report& report) {
  for (const CallRef& clip : program.calls(Api::clip_grad)) {
    const FunctionRef function = program.enclosing_function(clip.ref());
    const auto here = [&](const CallRef& call) {
      return call.module == clip.module && program.enclosing_function(call.ref()) == function;
    };
    CallRef scaled;
    for (const CallRef& backward : program.calls_named("backward")) {
      const CallRef scale = program.as_call(backward.receiver());
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
  }
}

}  // namespace bench::pitfalls
