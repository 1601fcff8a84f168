#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"
#include "scenarios/pitfalls/loaders.hpp"

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::ClassRef;
using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::Module;
using diagnose::NodeId;

namespace {

bool reduces_anything(const Program& program) {
  for (const Api api : {Api::all_reduce, Api::all_gather, Api::reduce, Api::gather, Api::broadcast})
    if (program.uses(api)) return true;
  for (const std::string_view word :
       {"torchmetrics", "reduce_tensor", "all_reduce", "all_gather", "synchronize_between"})
    if (program.mentions(word)) return true;
  return false;
}

// A value that is accumulated in the loop: total += ..., losses.append(...).
bool accumulates(Ref loop) {
  const auto& tree = loop.module->tree();
  for (const NodeId node : loop.module->nodes_of(Kind::augmented_assignment))
    if (tree.contains(loop.node, node)) return true;
  for (const CallRef& call : facts::calls_in(loop))
    if (call.call->name == "append" || call.call->name == "update") return true;
  return false;
}

}  // namespace

void check_metric_not_reduced(const Program& program, Report& report) {
  for (const CallRef& log : program.calls_named("log")) {
    if (!log.receiver() || log.receiver().text() != "self" || log.keyword("sync_dist")) continue;
    const ClassRef cls = program.enclosing_class(log.ref());
    if (!cls || !program.derives_from(cls, Api::lightning_module)) continue;
    const FunctionRef step = program.enclosing_function(log.ref());
    if (!step || (step.function->name != "validation_step" && step.function->name != "test_step"))
      continue;
    Finding& finding = report.at(log.ref(), Confidence::check,
                                 "the logged value is that of one rank's shard unless "
                                 "sync_dist=True (torchmetrics objects excepted)");
    finding.severity = Severity::info;
    finding.help = "Pass sync_dist=True for values logged once an epoch.";
  }
  if (!program.has_ddp() || program.framework_distributes() || reduces_anything(program)) return;
  for (const Module* module : program.modules())
    for (const NodeId node : module->loops()) {
      const Ref loop{module, node};
      if (loop.kind() != Kind::for_statement || !accumulates(loop)) continue;
      for (const CallRef& loader : loaders_of(program, loop.child(Field::right))) {
        if (!sampler_of(program, loader) || !is_evaluation_loader(program, loader)) continue;
        report
            .at(loop, Confidence::likely,
                "each rank evaluates its own shard and nothing is reduced: the metric is that of "
                "one "
                "rank's part of the data")
            .help = "All-reduce the sum and the count before dividing.";
        break;
      }
    }
}

}  // namespace bench::pitfalls
