#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/frameworks/accelerate_configs.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/laboratory/trial_prices.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/reach/as_configured.hpp"
#include "scenarios/pitfalls/steps/unsynced_steps.hpp"
#include "scenarios/pitfalls/wrappers/bypass.hpp"
#include "scenarios/pitfalls/wrappers/frozen.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::Module;
using diagnose::NodeId;

namespace {

// What the context may be: model.no_sync() or nullcontext(), and what is called for it,
// model.no_sync or nullcontext.
std::vector<Ref> chosen_contexts(const Program& program, Ref context) {
  std::vector<Ref> out;
  for (const diagnose::Source& source : program.sources(context)) out.push_back(source.ref);
  const CallRef call = program.as_call(context);
  if (!call || call.module->tree()[call.call->function].kind != Kind::identifier) return out;
  const auto& functions = program.sources(context.with(call.call->function));
  if (functions.size() > 1) out.clear();
  if (functions.size() > 1)
    for (const diagnose::Source& source : functions) out.push_back(source.ref);
  return out;
}

// self.no_sync(not last) of a class of its own: the argument says whether anything is put off.
bool is_switch(Ref argument) {
  const Kind kind = argument.kind();
  return kind == Kind::not_expression || kind == Kind::comparison || kind == Kind::boolean ||
         kind == Kind::true_literal || kind == Kind::false_literal;
}

// with accelerator.trigger_sync_in_backward(model): loss.backward(): the last backward pass reduces
// what the forward passes under no_sync() were to put off.
bool triggers_sync(const Program& program) {
  if (program.mentions("prepare_for_backward")) return true;
  for (const Module* module : program.modules())
    for (const diagnose::Call& call : module->calls())
      if (facts::contains(call.name, "trigger_sync")) return true;
  return false;
}

// schedule.forward_backward_step(model, batches) of a pipeline does both.
bool runs_both_passes(std::string_view name) {
  return facts::contains(name, "forward_backward") || facts::contains(name, "forward_and_backward");
}

// model for `with model.no_sync():`, also where the context is chosen above.
Ref synced_model(const Program& program, Ref context) {
  for (const Ref chosen : chosen_contexts(program, context)) {
    if (chosen.kind() == Kind::attribute && chosen.child(Field::attribute).text() == "no_sync")
      return chosen.child(Field::object);
    const CallRef call = program.as_call(chosen);
    if (!call || call.call->name != "no_sync") continue;
    if (is_switch(call.positional(0))) return call.receiver();
    return call.positional(0) ? call.positional(0) : call.receiver();  // accelerator.no_sync(model)
  }
  return {};
}

// booster.no_sync(model, optimizer) of ColossalAI asks in the backward pass, as ZeRO does.
bool is_of_booster(const Program& program, Ref context) {
  if (!program.imports("colossalai")) return false;
  for (const Ref chosen : chosen_contexts(program, context)) {
    const CallRef call = program.as_call(chosen);
    if (call && call.call->name == "no_sync" && call.positional(0) &&
        facts::contains(facts::lowered(call.receiver().text()), "boost"))
      return true;
  }
  return false;
}

// with context(): ... if last: optimizer.step(), where the context may be another one by then.
bool steps_with_another(const Program& program, Ref with, Ref context, Ref step) {
  if (chosen_contexts(program, context).size() < 2) return false;
  return program.guards(step).size() > program.guards(with).size();
}

// Why no micro-batch comes under no_sync(): every place that makes the context is passed by.
std::string never_entered(const Program& program, Ref context) {
  std::string why;
  for (const Ref chosen : chosen_contexts(program, context)) {
    if (!facts::contains(chosen.text(), "no_sync")) continue;
    why = facts::passed_by_as_configured(program, chosen);
    if (why.empty()) break;
  }
  return why;
}

// if last: out = run() beside else: with model.no_sync(): out = run(), or a context that is chosen:
// the last micro-batch reduces what the others have summed up, wherever backward() stands.
bool last_pass_syncs(const Program& program, Ref with, Ref context, Ref body) {
  for (const Ref chosen : chosen_contexts(program, context))
    if (!facts::contains(chosen.text(), "no_sync")) return true;
  const auto& tree = with.module->tree();
  const NodeId choosing = tree.ancestor(with.node, Kind::if_statement);
  if (choosing == kNoNode) return false;
  const Ref choice = with.with(choosing);
  for (const Field side : {Field::consequence, Field::alternative}) {
    const Ref other = choice.child(side);
    if (!other || tree.contains(other.node, with.node)) continue;
    for (const CallRef& synced : facts::calls_in(other))
      for (const CallRef& call : facts::calls_in(body))
        if (synced.ref().text() == call.ref().text()) return true;
  }
  return false;
}

// def compute_loss(self, batch): raise NotImplementedError, which classes elsewhere define.
bool is_left_to_others(const diagnose::FunctionRef& method) {
  return facts::contains(method.module->text(method.function->body), "NotImplementedError");
}

// self.training_losses(batch) of a class that the program does not show: the forward pass may be in
// it.
bool runs_method_out_of_sight(const Program& program, Ref body) {
  const auto calls = facts::calls_in(body);
  return std::any_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    const std::string_view name = call.call->name;
    return call.receiver().text() == "self" && !facts::contains(name, "backward") &&
           !facts::contains(name, "log") && call.module->defs_of(name, true).empty() &&
           (!program.callee(call) || is_left_to_others(program.callee(call)));
  });
}

NodeId last_backward(Ref body) {
  NodeId last = kNoNode;
  for (const CallRef& call : facts::calls_in(body))
    if (call.call->name == "backward" && (last == kNoNode || call.call->node > last))
      last = call.call->node;
  return last;
}

// self.raw(x), where self.raw is the model that was wrapped under another name.
bool runs_twin_of_wrapped(const Program& program, const CallRef& call) {
  const auto& wraps = program.wraps();
  return std::any_of(wraps.begin(), wraps.end(), [&](const diagnose::Wrap& wrap) {
    return is_other_attribute_of(program, {call.module, call.call->function}, wrap);
  });
}

// ctx = model.no_sync() if self.ddp else nullcontext(): in a run of several processes there is one.
bool is_chosen_by_run(const Program& program, Ref context) {
  const auto chosen = chosen_contexts(program, context);
  return std::all_of(chosen.begin(), chosen.end(), [&](Ref each) {
    const auto& tree = each.module->tree();
    const NodeId choice = tree[each.node].parent;
    if (tree[choice].kind != Kind::conditional) return false;
    const Ref condition = each.with(tree.child_at(choice, 1));
    return condition &&
           (condition.kind() == Kind::identifier || condition.kind() == Kind::attribute) &&
           program.is_distributed_flag(condition);
  });
}

// distributed_type: DEEPSPEED in each of the project's Accelerate configs: no_sync() of Accelerate
// is empty then, and the engine reduces in its backward pass.
std::string why_empty(const Program& program, Ref context) {
  const CallRef made = program.as_call(context);
  if (!made || !program.is_accelerator(made.receiver())) return {};
  return is_configured_for_deepspeed(program)
             ? "the project's Accelerate config takes DeepSpeed, which no_sync does not keep from "
               "reducing"
             : "";
}

// Steps inside the scope, and those that no pass outside of it leads to.
void report_steps(const Program& program, Ref with, Ref context, Report& report) {
  const auto tell = [&](const CallRef& step, Confidence confidence, std::string message) {
    Finding& finding =
        as_in_trial(report.at(step.ref(), confidence, std::move(message)), "step-inside");
    finding.help = "Run the last micro-batch outside of no_sync(), then step.";
    tell_as_note(finding, why_empty(program, context));
  };
  for (const CallRef& call : facts::calls_in(with.child(Field::body)))
    if (call.call->name == "step" && program.comes_from(call.receiver(), Api::optimizer) &&
        !steps_with_another(program, with, context, call.ref()))
      tell(call, Confidence::certain,
           "the optimizer steps inside no_sync(): on gradients that were never reduced, so the "
           "replicas drift apart");
  const auto chosen = chosen_contexts(program, context);
  if (chosen.size() > 1 && !is_chosen_by_run(program, context)) return;
  const CallRef made = chosen.empty() ? CallRef{} : program.as_call(chosen.front());
  if (made && is_switch(made.positional(0))) return;  // off in the pass that the step is for
  if (const CallRef step = step_without_sync(program, with))
    tell(step, Confidence::likely,
         "every backward pass of this step runs inside no_sync(): the gradients are never reduced, "
         "so the replicas drift apart");
}

}  // namespace

void check_no_sync_scope(const Program& program, Report& report) {
  for (const Module* module : program.modules())
    for (const NodeId node : module->nodes_of(Kind::with_statement)) {
      const Ref with{module, node};
      const auto& tree = module->tree();
      const NodeId item = tree[node].first_child;
      const NodeId context = item == kNoNode ? kNoNode : tree[item].first_child;
      if (context == kNoNode) continue;
      const Ref body = with.child(Field::body);
      const Ref model = synced_model(program, with.with(context));
      if (!body || !model) continue;
      // FSDP asks in the backward pass, not in the forward; a helper that is handed some model does
      // not say which it is.
      const bool may_be_ddp = !program.uses(Api::fsdp) &&
                              !program.mentions("torch.distributed.fsdp") &&
                              !is_of_booster(program, with.with(context)) &&
                              (program.has_ddp() || program.framework_distributes());
      if (!may_be_ddp && !program.is_wrapped(model, diagnose::Wrapper::ddp)) continue;
      const std::string name(model.text());
      const NodeId last = last_backward(body);
      const bool forward = program.subtree_calls(body, [&](CallRef call) {
        // update_ema(model, ema) behind the backward pass is no forward pass.
        if (call.module == module && tree.contains(body.node, call.call->node) && last != kNoNode &&
            call.call->node >= tree[last].last)
          return false;
        // criterion(model, batch) runs it too.
        for (std::size_t i = 0; const Ref argument = call.positional(i); ++i)
          if (argument.text() == name) return true;
        if (name == "self" &&
            program.is_wrapped({call.module, call.call->function}, diagnose::Wrapper::ddp))
          return true;  // of all models that the object has
        // A forward pass round the wrapper is another mistake, and told by its rule.
        if (wrapper_gone_round(program, call) != nullptr || runs_twin_of_wrapped(program, call) ||
            runs_both_passes(call.call->name))
          return true;
        return call.module->text(call.call->function) == name || call.call->name == "forward" ||
               call.call->name == "training_step" || facts::contains(call.call->name, "model");
      });
      const bool backward = program.subtree_calls(body, [&](CallRef call) {
        // The training_step of a library's Trainer runs both.
        return call.call->name == "backward" || runs_both_passes(call.call->name) ||
               (call.call->name == "training_step" && !program.callee(call));
      });
      report_steps(program, with, with.with(context), report);
      if (backward && !forward && !runs_method_out_of_sight(program, body)) {
        Finding& finding = as_in_trial(report.at(with, Confidence::likely,
                                                 "no_sync() covers the backward pass but not the "
                                                 "forward: DDP decides at the forward, "
                                                 "so the gradients are reduced all the same"),
                                       "forward-outside");
        finding.severity = Severity::warning;
        finding.help = "Put forward and backward of a micro-batch inside no_sync() together.";
        tell_as_note(finding, never_entered(program, with.with(context)));
      }
      if (forward && !backward && !last_pass_syncs(program, with, with.with(context), body) &&
          !triggers_sync(program) && !is_frozen_at(program, model, with)) {
        Finding& finding = as_in_trial(
            report.at(with, Confidence::likely,
                      "no_sync() covers the forward pass but not the backward: those gradients are "
                      "never reduced and the replicas drift apart"),
            "backward-outside");
        finding.help = "Put forward and backward of a micro-batch inside no_sync() together.";
        tell_as_note(finding, never_entered(program, with.with(context)));
      }
    }
}

namespace {

struct ScopeFault {
  bool split = false;        // forward and backward of a micro-batch on two sides of no_sync
  bool step_inside = false;  // the optimizer steps after a pass inside no_sync
};

ScopeFault scope_fault(const RunEvidence& run) {
  const Json* forwards = run.first("forward_in_no_sync");
  const Json* backwards = run.first("backward_in_no_sync");
  ScopeFault fault;
  if (forwards == nullptr || backwards == nullptr || forwards->empty()) return fault;
  fault.split = *forwards != *backwards;
  fault.step_inside = forwards->back().get<bool>() && backwards->back().get<bool>();
  return fault;
}

}  // namespace

void judge_no_sync_scope(const RunEvidence& run, RunReport& report) {
  const ScopeFault fault = scope_fault(run);
  if (!fault.split && !fault.step_inside) return;
  const bool drift = ranks_differ(run, "step_gradient_sum");
  std::string message = fault.step_inside
                            ? "the optimizer stepped after a pass inside no_sync"
                            : "forward and backward of a pass are on two sides of no_sync";
  message +=
      drift ? ": gradients were not reduced, sums by rank " + rank_figures(run, "step_gradient_sum")
            : ": the gradients were reduced " + figure(run.number("reductions")) +
                  " times for one step";
  Finding& finding = report.add(Confidence::certain, std::move(message));
  finding.help =
      "Forward and backward both inside no_sync, and the last micro-batch of a step outside.";
  finding.evidence.emplace_back("gradient sums", rank_figures(run, "step_gradient_sum"));
}

Price price_no_sync_scope(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  const bool drift = ranks_differ(broken, "step_gradient_sum");
  const double wasted = broken.number("reductions") - cured.number("reductions");
  price.reproduced = drift || wasted > 0;
  price.gone = !ranks_differ(cured, "step_gradient_sum") && cured.number("reductions") == 1;
  if (drift) {
    price.cost = rank_spread(broken, "step_gradient_sum");
    price.unit = "difference of gradient sums between ranks";
    price.seen = "silent: gradient sums " + rank_figures(broken, "step_gradient_sum") +
                 " by rank instead of " + figure(cured.number("step_gradient_sum")) +
                 " on all of them";
  } else {
    price.cost = wasted;
    price.unit = wasted == 1 ? "all-reduce saved less per step" : "all-reduces saved less per step";
    price.seen = "silent: " + figure(broken.number("reductions")) +
                 " all-reduces a step, as if no_sync were not there";
  }
  return price;
}

}  // namespace bench::pitfalls
