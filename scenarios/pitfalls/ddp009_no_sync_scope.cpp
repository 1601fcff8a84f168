#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::Module;
using diagnose::NodeId;

namespace {

bool is_no_sync(const Program& program, Ref item) {
  const CallRef call = program.as_call(item);
  return call && call.call->name == "no_sync";
}

// model for `with model.no_sync():`
Ref synced_model(const Program& program, Ref with) {
  for (const CallRef& call : facts::calls_in(with))
    if (is_no_sync(program, call.ref())) return call.receiver();
  return {};
}

}  // namespace

void check_no_sync_scope(const Program& program, Report& report) {
  for (const Module* module : program.modules())
    for (const NodeId node : module->nodes_of(Kind::with_statement)) {
      const Ref with{module, node};
      const auto& tree = module->tree();
      const NodeId item = tree[node].first_child;
      const NodeId context = item == kNoNode ? kNoNode : tree[item].first_child;
      if (context == kNoNode || !is_no_sync(program, with.with(context))) continue;
      const Ref body = with.child(Field::body);
      const Ref model = synced_model(program, with);
      if (!body || !model) continue;
      const std::string name(model.text());
      const bool forward = program.subtree_calls(body, [&](CallRef call) {
        return call.module->text(call.call->function) == name || call.call->name == "forward" ||
               call.call->name == "training_step" || facts::contains(call.call->name, "model");
      });
      const bool backward =
          program.subtree_calls(body, [](CallRef call) { return call.call->name == "backward"; });
      for (const CallRef& call : facts::calls_in(body))
        if (call.call->name == "step" && program.comes_from(call.receiver(), Api::optimizer))
          report
              .at(call.ref(), Confidence::certain,
                  "the optimizer steps inside no_sync(): on gradients that were never reduced, so "
                  "the replicas drift apart")
              .help = "Run the last micro-batch outside of no_sync(), then step.";
      if (backward && !forward)
        report
            .at(with, Confidence::likely,
                "no_sync() covers the backward pass but not the forward: DDP decides at the "
                "forward, "
                "so the gradients are reduced all the same")
            .severity = Severity::warning;
      if (forward && !backward)
        report
            .at(with, Confidence::likely,
                "no_sync() covers the forward pass but not the backward: those gradients are never "
                "reduced and the replicas drift apart")
            .help = "Put forward and backward of a micro-batch inside no_sync() together.";
    }
}

}  // namespace bench::pitfalls
