#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/laboratory/trial_prices.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/reach/order.hpp"
#include "scenarios/pitfalls/steps/gradient_sources.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::ClassRef;
using diagnose::TrainingLoop;

namespace {

// Forward passes behind a loss: of wrapped models, or else of what is known or named as a model.
std::vector<Ref> forwards_of(const Program& program, Ref loss) {
  std::vector<Ref> out;
  for (const auto& forward : facts::forwards_behind(program, loss))
    out.push_back(forward.call.ref());
  if (!out.empty()) return out;
  for (const Ref& node : facts::calls_behind(program, loss)) {
    const CallRef call = program.as_call(node);
    if (call.module->text(call.call->function) == "self") continue;  // within a model
    const ClassRef cls = program.class_of({call.module, call.call->function});
    const std::string name = facts::lowered(call.module->text(call.call->function));
    if ((cls && program.derives_from(cls, Api::module_class)) || name == "model" || name == "net" ||
        name == "self.model")
      out.push_back(node);
  }
  return out;
}

// @torch.no_grad() above the function that makes the loss and calls backward(): whatever the loss
// is made of, nothing of it has gradients. Empty where gradients may be switched on again.
Ref forward_in_step_without_grad(const Program& program, const CallRef& backward, Ref loss) {
  const auto function = program.enclosing_function(backward.ref());
  if (!function || !program.under_no_grad(backward.ref()) || facts::is_parameter(program, loss))
    return {};
  const std::string_view text = function.module->text(function.function->node);
  if (holds_any(text, {"requires_grad", "enable_grad", "set_grad_enabled", "Parameter(",
                       "inference_mode(False"}))
    return {};
  Ref first;
  for (const Ref& node : facts::calls_behind(program, loss)) {
    if (program.enclosing_function(node) != function) continue;
    if (!program.under_no_grad(node)) return {};
    if (!first || node.node < first.node) first = node;
  }
  for (const diagnose::Source& source : program.sources(loss))
    if (source.how != diagnose::Source::How::value ||
        program.enclosing_function(source.ref) != function)
      return {};
  return first;
}

// batch = normalizer.backward(batch): what has this name undoes a transformation. Autograd's gives
// nothing back, and DeepSpeed's engine the loss that it is given.
bool is_of_a_transformation(const CallRef& backward) {
  const auto& tree = backward.module->tree();
  const diagnose::Kind around = tree[tree[backward.call->node].parent].kind;
  const bool is_used = around == diagnose::Kind::assignment ||
                       around == diagnose::Kind::return_statement ||
                       around == diagnose::Kind::attribute || around == diagnose::Kind::subscript;
  const Ref given = backward.positional(0);
  return is_used && given && !says_any(given.text(), {"loss"});
}

// The function is decorated, or its whole body is under the `with`.
bool has_gradients_off(const Program& program, const CallRef& backward) {
  const auto function = program.enclosing_function(backward.ref());
  const auto& tree = backward.module->tree();
  const diagnose::NodeId parent =
      function ? tree[function.function->node].parent : diagnose::kNoNode;
  return parent != diagnose::kNoNode && tree[parent].kind == diagnose::Kind::decorated &&
         program.under_no_grad({function.module, function.function->body});
}

}  // namespace

void check_no_grad_training_forward(const Program& program, Report& report) {
  std::vector<diagnose::FunctionRef> told;
  for (const CallRef& backward : program.calls_named("backward")) {
    const Ref loss = facts::loss_of(backward);
    const auto function = program.enclosing_function(backward.ref());
    if (!loss || is_of_a_transformation(backward) || !has_gradients_off(program, backward) ||
        std::find(told.begin(), told.end(), function) != told.end())
      continue;
    const Ref forward = forward_in_step_without_grad(program, backward, loss);
    if (!forward) continue;
    told.push_back(function);
    report
        .at(backward.ref(), Confidence::certain,
            "the function runs under no_grad, the forward pass in it too: backward() raises "
            "\"element 0 of tensors does not require grad\"")
        .help = "Take the decorator off the function.";
  }
  for (const TrainingLoop& loop : program.training_loops())
    for (const CallRef& backward : loop.backwards) {
      const Ref loss = facts::loss_of(backward);
      const std::vector<Ref> forwards = forwards_of(program, loss);
      const bool all =
          !forwards.empty() && std::all_of(forwards.begin(), forwards.end(), [&](Ref at) {
            return facts::is_without_gradients(program, at, loss) &&
                   runs_in(program, loop.batches, at);
          });
      if (!all || facts::may_have_gradients(program, loss)) continue;
      report
          .at(forwards.front(), Confidence::certain,
              "the training forward runs under no_grad: backward() raises \"element 0 of tensors "
              "does not "
              "require grad\", or trains nothing")
          .help = "Take the forward pass out of no_grad.";
    }
}

namespace {

constexpr std::string_view kNoGradientError = "does not require grad and does not have a grad_fn";

}  // namespace

void judge_no_grad_training_forward(const RunEvidence& run, RunReport& report) {
  const std::string error = run.error_with(kNoGradientError);
  if (error.empty() || run.number("grad_in_training_forward") != 0) return;
  Finding& finding = report.add(Confidence::certain,
                                "the training forward pass ran with gradients switched off; "
                                "backward: " +
                                    first_sentence(error));
  finding.help = "Leave the training forward pass outside torch.no_grad().";
  finding.evidence.emplace_back("error", error);
}

Price price_no_grad_training_forward(const RunEvidence& broken, const RunEvidence& cured) {
  return price_of_crash(broken, cured, kNoGradientError);
}

}  // namespace bench::pitfalls
