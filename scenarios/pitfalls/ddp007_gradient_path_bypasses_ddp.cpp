#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/frameworks/prepared.hpp"
#include "scenarios/pitfalls/frameworks/unwrapped_training.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/steps/stored_gradients.hpp"
#include "scenarios/pitfalls/wrappers/bare_calls.hpp"
#include "scenarios/pitfalls/wrappers/bypass.hpp"
#include "scenarios/pitfalls/wrappers/frozen.hpp"
#include "scenarios/pitfalls/wrappers/handed_to_training.hpp"
#include "scenarios/pitfalls/wrappers/hook_bypass.hpp"
#include "scenarios/pitfalls/wrappers/idle_wrapper.hpp"
#include "scenarios/pitfalls/wrappers/inner_steps.hpp"
#include "scenarios/pitfalls/wrappers/lost_wrapper.hpp"
#include "scenarios/pitfalls/wrappers/never_wrapped.hpp"
#include "scenarios/pitfalls/wrappers/own_wrappers.hpp"

#include <algorithm>
#include <cctype>
#include <optional>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;
using diagnose::TrainingLoop;
using diagnose::Wrap;
using diagnose::Wrapper;

namespace {

// ddp for ddp.module(x) and ddp.module.encode(x); empty when the call does not go round the
// wrapper.
Ref bypassed(const CallRef& call) {
  Ref function{call.module, call.call->function};
  for (int depth = 0; depth < 3 && function.kind() == Kind::attribute; ++depth) {
    const Ref attribute = function.child(Field::attribute);
    if (attribute && attribute.text() == "module") return function.child(Field::object);
    function = function.child(Field::object);
  }
  return {};
}

// raw(x) after raw = ddp.module if distributed else model, a name that never holds the wrapper:
// ddp; empty when it is anything else.
Ref held_below(const Program& program, const CallRef& call) {
  const Ref name{call.module, call.call->function};
  const auto function = program.enclosing_function(name);
  if (name.kind() != Kind::identifier) return {};
  if (function &&
      std::any_of(function.function->parameters.begin(), function.function->parameters.end(),
                  [&](const auto& each) { return each.name == name.text(); }))
    return {};
  for (const diagnose::Source& source : program.sources(name))
    if (wrapper_of_inner(program, source.ref) &&
        source.ref.child(Field::object).text() != name.text())
      return source.ref.child(Field::object);
  return {};
}

// diffusion.training_losses(ddp.module, x): a library's loss runs the forward pass of what it is
// given. Empty where it is given the wrapper.
Ref handed_to_library(const Program& program, const CallRef& call) {
  if (program.callee(call) || program.class_of_call(call)) return {};
  for (std::size_t i = 0; const Ref argument = call.positional(i); ++i)
    if (const Ref wrapper = wrapper_above(program, argument)) return wrapper;
  return {};
}

// A method of that name is decorated with no_grad. Every module has a forward(): that of one of
// them says nothing about another.
bool runs_without_grad(const Program& program, const CallRef& call) {
  if (call.call->name == "forward") {
    const auto callee = program.callee(call);
    return callee && program.under_no_grad({callee.module, callee.function->body});
  }
  for (const auto& function : program.functions())
    if (function.function->name == call.call->name &&
        program.under_no_grad({function.module, function.function->body}))
      return true;
  return false;
}

// Backward passes that train: those of training loops, and those that stand alone in a script.
std::vector<CallRef> backwards_of(const Program& program) {
  std::vector<CallRef> out;
  for (const TrainingLoop& loop : program.training_loops())
    out.insert(out.end(), loop.backwards.begin(), loop.backwards.end());
  if (!out.empty()) return out;
  for (const CallRef& backward : program.calls_named("backward"))
    if (backward.receiver() && backward.receiver().text() != "self") out.push_back(backward);
  return out;
}

// What a helper makes that is called in several places are several objects.
bool is_one_object(const Program& program, Ref made, const Wrap& wrap) {
  const auto function = program.enclosing_function(made);
  return !function || function == program.enclosing_function(wrap.call.ref()) ||
         program.call_sites(function).size() < 2;
}

// train(model, ...) after ddp_model = DDP(model): the parameter holds the very object that was
// wrapped, and never the wrapper.
bool is_handed_bare(const Program& program, Ref function, const Wrap& wrap) {
  if (!diagnose::stands_for_object(function) || program.is_wrapped(function, Wrapper::ddp))
    return false;
  const auto& inner = program.module_sources(wrap.module);
  const auto& given = program.module_sources(function);
  return !given.empty() && std::all_of(given.begin(), given.end(), [&](const auto& source) {
    return source.how == diagnose::Source::How::value && program.as_call(source.ref) &&
           is_one_object(program, source.ref, wrap) &&
           std::any_of(inner.begin(), inner.end(),
                       [&](const auto& other) { return other.ref == source.ref; });
  });
}

// losses(ddp_model, x): what is called runs the wrapper. A name for the model inside it, chosen
// where there is a wrapper, is none.
bool is_handed_wrapper(const Program& program, const CallRef& call) {
  for (std::size_t i = 0; const Ref argument = call.positional(i); ++i)
    if (program.is_wrapped(argument, Wrapper::ddp) && !wrapper_above(program, argument))
      return true;
  return false;
}

void report_bypass(Report& report, Ref node, std::string_view how) {
  report
      .at(node, Confidence::certain,
          std::string(how) +
              ", not the wrapper: its gradients are never reduced and every rank trains a model of "
              "its own")
      .help = "Call the DDP object itself; send other methods through forward.";
}

void check_training_out_of_sight(const Program& program, Report& report) {
  for (const CallRef& call : program.calls_that(may_train)) {
    const Ref wrapper = handed_to_training(program, call);
    if (!wrapper || facts::only_without_distribution(program, call.ref()) ||
        !facts::is_reachable(program, call.ref()) ||
        !never_trains_through(program, *program.wrap_of(wrapper, Wrapper::ddp)))
      continue;
    report
        .at(call.ref(), Confidence::likely,
            "the training function is handed " + what_is_handed(call, wrapper) +
                ": its gradients are never reduced and every rank trains a model of its own")
        .help = "Hand it the DDP object.";
  }
}

// model.optimize_parameters() runs the forward pass, the backward pass and the step of a model
// that is none by its name alone: it is called on what stands inside the wrapper.
void check_steps_of_model(const Program& program, Report& report) {
  const auto tell = [&](const CallRef& call, const Wrap* wrap) {
    if (wrap != nullptr && !facts::only_without_distribution(program, call.ref()) &&
        facts::is_reachable(program, call.ref()) && never_trains_through(program, *wrap))
      report_bypass(report, call.ref(), "the training step is run by the model inside");
  };
  for (const CallRef& call : program.calls_named("optimize_parameters")) {
    const Ref model = call.receiver();
    if (!model || program.callee(call)) continue;
    Ref wrapper = wrapper_above(program, model);
    for (const diagnose::Source& source : program.sources(model))
      if (!wrapper && wrapper_of_inner(program, source.ref))
        wrapper = source.ref.child(Field::object);
    tell(call, wrapper ? program.wrap_of(wrapper, Wrapper::ddp) : nullptr);
  }
  for (const CallRef& call : steps_of_inner(program))
    tell(call, wrapper_of_inner(program, call.receiver()));
}

// Its parameters are asked for between the backward pass and the next one, to clip them.
bool clips_after(const Program& program, const CallRef& backward, Ref model) {
  diagnose::NodeId next = backward.module->tree()[0].last;
  for (const CallRef& other : backwards_of(program))
    if (other.module == backward.module && other.call->node > backward.call->node)
      next = std::min(next, other.call->node);
  const auto asked = program.calls_named("parameters");
  return std::any_of(asked.begin(), asked.end(), [&](const CallRef& call) {
    return call.module == backward.module && call.receiver() &&
           call.receiver().text() == model.text() && call.call->node > backward.call->node &&
           call.call->node < next;
  });
}

// Another model's loss, which this one is only a judge in: its own backward pass is another.
bool is_judge_in(const Program& program, const CallRef& backward, Ref model) {
  const auto all = backwards_of(program);
  return !clips_after(program, backward, model) &&
         std::any_of(all.begin(), all.end(),
                     [&](const CallRef& other) { return clips_after(program, other, model); });
}

// loss = accelerator.unwrap_model(model).loss(x): the wrapper that prepare() returned is idle.
void check_prepared(const Program& program, Report& report) {
  for (const CallRef& backward : backwards_of(program)) {
    if (!is_of_accelerator(program, backward)) continue;
    for (const Ref& node : facts::calls_behind(program, facts::loss_of(backward))) {
      const CallRef call = program.as_call(node);
      if (runs_no_forward(program, call) || program.under_no_grad(node) ||
          runs_without_grad(program, call) || program.is_evaluation(node))
        continue;
      Ref model = prepared_gone_round(program, call);
      const bool from_before = !model;
      if (from_before) model = kept_from_before(program, call);
      if (!model || is_judge_in(program, backward, model)) continue;
      const Ref function{call.module, call.call->function};
      const auto names = program.names_behind(function);
      const bool kept =
          model == function || std::find(names.begin(), names.end(), model) != names.end();
      const bool below = facts::contains(function.text(), ".module");
      Finding& finding = report.at(
          node, Confidence::likely,
          std::string(from_before ? "the forward pass goes through an object that keeps the "
                                    "model from before it was prepared"
                      : lost_by_unwrapping(program, call)
                          ? "the name was given the model inside, and the forward pass goes "
                            "through that"
                      : kept  ? "the forward pass uses the model that was prepared"
                      : below ? "the forward pass goes through .module"
                              : "the forward pass goes through "
                                "accelerator.unwrap_model()") +
              ", not what accelerator.prepare() returned: its gradients are never "
              "reduced and every process trains a model of its own");
      finding.severity = Severity::warning;
      finding.help = "Call what prepare() returned; send other methods through forward.";
    }
  }
}

// A wrapper is called somewhere, beside the model that was taken out of one: for an attack on it,
// whose backward pass no step follows, or in turn with it.
bool trains_through_another(const Program& program) {
  const auto& forwards = program.forward_calls();
  return std::any_of(forwards.begin(), forwards.end(), [&](const auto& forward) {
    return forward.wrap->kind == Wrapper::ddp && !program.under_no_grad(forward.call.ref()) &&
           !program.is_evaluation(forward.call.ref()) && !has_lost_wrapper(program, forward.call);
  });
}

// optimizer.step() and scaler.step(optimizer) below the backward pass, in its function.
bool steps_after(const Program& program, const CallRef& backward) {
  const auto calls = program.calls_named("step");
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    return call.module == backward.module && call.call->node > backward.call->node &&
           program.enclosing_function(call.ref()) == program.enclosing_function(backward.ref());
  });
}

constexpr std::string_view kLost =
    "the name was given the model inside, and the forward pass goes through that";

// Programs that make no wrapper themselves.
void check_without_wrapper(const Program& program, Report& report) {
  for (const CallRef& forward : unreduced_forwards(program))
    report
        .at(forward.ref(), Confidence::likely,
            "no wrapper reduces the gradients of ranks that train on their own shares of the "
            "data: every rank trains a model of its own")
        .help = "Wrap the model in DistributedDataParallel before the optimizer is made.";
  if (!program.uses(diagnose::Api::init_process_group) || program.framework_distributes()) return;
  for (const CallRef& backward : backwards_of(program))
    for (const Ref& node : facts::calls_behind(program, facts::loss_of(backward)))
      if (!runs_no_forward(program, program.as_call(node)) && !program.under_no_grad(node) &&
          !program.is_evaluation(node) && has_lost_wrapper(program, program.as_call(node)) &&
          steps_after(program, backward))
        report_bypass(report, node, kLost);
}

void check_dropped_wrappers(const Program& program, Report& report) {
  for (const CallRef& lost : wrappers_of_loop_items(program))
    report
        .at(lost.ref(), Confidence::certain,
            "the loop gives its own variable the wrapper and drops it: the models stay bare, their "
            "gradients are never reduced and every rank trains models of its own")
        .help = "Keep what DDP() returns: nets = [DDP(net) for net in nets], or setattr().";
  if (!program.training_loops().empty())
    for (const CallRef& dropped : wrappers_dropped(program))
      report
          .at(dropped.ref(), Confidence::likely,
              "nobody keeps the wrapper that DDP() returns: the model stays bare, its gradients "
              "are never reduced and every rank trains a model of its own")
          .help = "Keep it, return it, and call it: model = DDP(model).";
}

// The call runs the model by a name, or in an object, that it had before it was wrapped; empty
// where it does not.
std::string_view runs_bare(const Program& program, const CallRef& call, bool hands_on) {
  std::string_view how;
  const Ref function{call.module, call.call->function};
  for (const Wrap& wrap : program.wraps()) {
    if (wrap.kind == Wrapper::ddp && !hands_on && keeps_bare_model(program, call, wrap))
      how =
          "the forward pass goes through an object that was given the model before it was wrapped";
    if (wrap.kind == Wrapper::ddp && !hands_on && is_loss_given_bare(program, call, wrap) &&
        never_trains_through(program, wrap))
      how = "the loss is given the model that was wrapped";
    if (wrap.kind != Wrapper::ddp || !wrap.module) continue;
    if (!hands_on && runs_inside_of(program, call, wrap) &&
        program.runs_before(wrap.call.ref(), call.ref()) && never_trains_through(program, wrap))
      how = "the forward pass uses the model that was wrapped, or a part of it";
    const bool is_same =
        program.same_variable(function, wrap.module) ||
        (function.kind() != Kind::identifier && program.leads_to(function, wrap.module));
    const bool is_twin = is_other_attribute_of(program, function, wrap);
    if (!is_same && !is_twin && !is_handed_bare(program, function, wrap)) continue;
    const std::string_view name = program.assigned_name(wrap.call.ref());
    if (name.empty() || program.is_wrapped(function, Wrapper::ddp)) continue;
    // learner = Learner(net); net = DDP(net): what the object keeps is the bare model.
    const bool keeps = function.kind() == Kind::attribute && !hands_on &&
                       !program.same_variable(function, wrap.module) &&
                       is_handed_bare(program, function, wrap) &&
                       never_trains_through(program, wrap);
    if (name == wrap.module.text() && !keeps && !is_twin) continue;
    if (program.runs_before(wrap.call.ref(), call.ref()))
      how = "the forward pass uses the model that was wrapped";
  }
  return how;
}

// if train: out = ddp(x) else: out = ddp.module(x), and loss.backward() below another if train, or
// below a return for the other case.
bool never_meet(const Program& program, Ref forward, Ref backward) {
  if (facts::exclusive(forward, backward)) return true;
  if (forward.module != backward.module ||
      program.enclosing_function(forward) != program.enclosing_function(backward))
    return false;
  const auto around = program.guards(forward);
  const auto needed = program.guards(backward);
  return std::any_of(around.begin(), around.end(), [&](const diagnose::Guard& guard) {
    return std::any_of(needed.begin(), needed.end(), [&](const diagnose::Guard& other) {
      return other.holds != guard.holds && other.condition.text() == guard.condition.text();
    });
  });
}

}  // namespace

void check_gradient_path_bypasses_ddp(const Program& program, Report& report) {
  if (accelerate_wraps(program)) check_prepared(program, report);
  for (const CallRef& hook : hooks_below_wrapper(program))
    report_bypass(report, hook.ref(), "the Trainer's forward pass goes through .module");
  if (!program.has_ddp()) return check_without_wrapper(program, report);
  check_training_out_of_sight(program, report);
  check_steps_of_model(program, report);
  check_dropped_wrappers(program, report);
  check_stored_gradients(program, report);
  std::optional<bool> other_training;  // asked once: it looks at every forward pass
  for (const CallRef& backward : backwards_of(program)) {
    // After a forward of the wrapper its hooks reduce every gradient, wherever it comes from.
    const auto forwards = facts::forwards_behind(program, facts::loss_of(backward));
    const auto behind = facts::calls_behind(program, facts::loss_of(backward));
    const auto prepares = [&](const Wrap& wrap, Ref bypass) {
      return std::any_of(forwards.begin(), forwards.end(), [&](const auto& forward) {
        return forward.wrap == &wrap && !program.under_no_grad(forward.call.ref()) &&
               !trains_in_other_steps(program, bypass, forward.call.ref(), backward.ref());
      });
    };
    // A function that takes .module out of what it is given is no such one.
    const auto hands_on_beside = [&](const Ref& bypass) {
      const auto here = program.enclosing_function(bypass);
      const Ref taken_out = program.as_call(bypass).receiver();  // unwrap(ddp).loss(x)
      return std::any_of(behind.begin(), behind.end(), [&](const Ref& node) {
        const CallRef call = program.as_call(node);
        return node != taken_out && is_handed_wrapper(program, call) &&
               (!here || program.callee(call) != here);
      });
    };
    for (const Ref& node : behind) {
      const CallRef call = program.as_call(node);
      if (runs_no_forward(program, call)) continue;
      const bool hands_on = hands_on_beside(node);
      if (program.under_no_grad(node) || runs_without_grad(program, call) ||
          never_meet(program, node, backward.ref()))
        continue;
      std::string_view how;
      Ref object = bypassed(call);
      if (!object) object = handed_on_by(program, call);
      const Wrap* wrapped = object ? program.wrap_of(object, Wrapper::ddp) : nullptr;
      // self.module(x) of a class that holds the wrapper under that name.
      const bool is_wrapper = object.text() == "self" &&
                              program.is_wrapped({call.module, call.call->function}, Wrapper::ddp);
      if (wrapped != nullptr && !is_wrapper && !prepares(*wrapped, node))
        how = "the forward pass goes through .module";
      const Wrap* round = wrapper_gone_round(program, call);
      if (round != nullptr && !hands_on && never_trains_through(program, *round))
        how = "the forward pass goes through .module";
      if (!hands_on && has_lost_wrapper(program, call) && steps_after(program, backward)) {
        if (!other_training) other_training = trains_through_another(program);
        if (!*other_training) how = kLost;
      }
      const Wrap* left_out = wrapper_left_out_of(program, call);
      if (left_out != nullptr && !hands_on && never_trains_through(program, *left_out))
        how = "the forward pass goes through an object that was given .module";
      Ref below = object ? Ref{} : held_below(program, call);
      if (!object && !below) below = handed_to_library(program, call);
      if (below && !hands_on && !facts::only_without_distribution(program, node) &&
          !prepares(*program.wrap_of(below, Wrapper::ddp), node))
        how = "the forward pass goes through .module";
      if (const std::string_view bare = runs_bare(program, call, hands_on); !bare.empty())
        how = bare;
      if (how.empty() ||
          (object && (is_frozen(program, object) || is_left_to_no_optimizer(program, object))))
        continue;
      report_bypass(report, node, how);
    }
  }
}

namespace {

// Largest difference of a figure between ranks; 0 unless every rank has it.
double spread_between_ranks(const std::vector<Json>& values) {
  double low = 0;
  double high = 0;
  for (const Json& value : values) {
    const auto number = value.get<double>();
    low = &value == &values.front() ? number : std::min(low, number);
    high = &value == &values.front() ? number : std::max(high, number);
  }
  return high - low;
}

double final_weight_spread(const RunEvidence& run) {
  std::vector<Json> last;
  for (const Json& sums : run.of_every_rank("weight_sums")) last.push_back(sums.back());
  return spread_between_ranks(last);
}

}  // namespace

void judge_gradient_path_bypasses_ddp(const RunEvidence& run, RunReport& report) {
  const std::vector<Json> sums = run.of_every_rank("gradient_sum");
  const bool bypassed = run.number("ddp_forwards") == 0 && run.number("backwards") > 0;
  if (!bypassed || ranks_agree(sums)) return;
  Finding& finding =
      report.add(Confidence::certain,
                 "no forward pass went through the wrapper, no gradient was reduced: the "
                 "ranks' gradients are " +
                     listed(Json(sums)));
  finding.help = "Call the DDP object itself; dispatch extra methods through forward.";
  finding.evidence.emplace_back("gradient sums by rank", listed(Json(sums)));
}

Price price_gradient_path_bypasses_ddp(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  const auto wrong = broken.of_every_rank("gradient_sum");
  price.reproduced = !ranks_agree(wrong) && final_weight_spread(broken) > 0;
  price.gone = ranks_agree(cured.of_every_rank("gradient_sum")) &&
               final_weight_spread(cured) == 0 && cured.number("gradient_all_reduces") > 0;
  price.cost = final_weight_spread(broken);
  price.unit = "apart: the ranks' sums of weights after 10 steps";
  price.seen = "silent: gradients of " + listed(Json(wrong)) + " on ranks that ought to have " +
               listed(Json(cured.of_every_rank("gradient_sum")));
  return price;
}

}  // namespace bench::pitfalls
