#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::Guard;
using diagnose::Kind;
using diagnose::NodeId;
using diagnose::Op;
using diagnose::TrainingLoop;

namespace {

bool synchronises_by_hand(const Program& program) {
  return !program.calls_named("no_sync").empty() || !program.calls_named("accumulate").empty() ||
         program.mentions("require_backward_grad_sync") || program.mentions("no_sync");
}

}  // namespace

void check_accumulation_without_no_sync(const Program& program, Report& report) {
  if (!program.has_ddp() || program.framework_distributes() || synchronises_by_hand(program))
    return;
  for (const CallRef& step : program.calls_named("step")) {
    const Ref receiver = step.receiver();
    if (!receiver || facts::contains(facts::lowered(receiver.text()), "sched")) continue;
    const bool steps_weights = program.comes_from(receiver, Api::optimizer) ||
                               program.comes_from(receiver, Api::grad_scaler) ||
                               facts::contains(facts::lowered(receiver.text()), "optim");
    const TrainingLoop* loop = facts::training_loop_of(program, step.ref());
    if (!steps_weights || loop == nullptr) continue;
    for (const Guard& guard : program.guards(step.ref())) {
      Ref modulo;
      for (NodeId id = guard.condition.node;
           id < guard.condition.module->tree()[guard.condition.node].last; ++id)
        if (guard.condition.module->tree()[id].op == Op::modulo) modulo = guard.condition.with(id);
      if (!modulo || modulo.kind() != Kind::binary ||
          program.integer(modulo.child(Field::right)) == 1)
        continue;
      bool backward_too = false;
      for (const CallRef& backward : loop->backwards)
        for (const Guard& other : program.guards(backward.ref()))
          backward_too = backward_too || other.condition == guard.condition;
      if (backward_too) continue;
      report
          .at(guard.condition, Confidence::likely,
              "gradients are accumulated over several passes, and DDP reduces them in every one: "
              "all "
              "but the last reduction are wasted")
          .help = "Run all passes but the last of each step under model.no_sync().";
      return;
    }
  }
}

}  // namespace bench::pitfalls
