#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Kind;
using diagnose::NodeId;
using diagnose::Op;
using diagnose::Source;
using diagnose::TrainingLoop;

namespace {

bool divides(const Program& program, Ref loss) {
  const auto& tree = loss.module->tree();
  for (NodeId id = loss.node; id < tree[loss.node].last; ++id)
    if (tree[id].kind == Kind::binary && (tree[id].op == Op::divide || tree[id].op == Op::multiply))
      return true;
  for (const Source& source : program.sources(loss))
    if (source.ref != loss && source.ref.kind() == Kind::binary) return true;
  return false;
}

}  // namespace

void check_loss_or_lr_scaling(const Program& program, Report& report) {
  if (!program.has_ddp()) return;
  for (const TrainingLoop& loop : program.training_loops())
    for (const CallRef& backward : loop.backwards) {
      const Ref loss = facts::loss_of(backward);
      if (divides(program, loss)) continue;
      for (const Source& source : program.sources(loss)) {
        const CallRef call = program.as_call(source.ref);
        if (!call) continue;
        CallRef made = call.call->api == Api::loss
                           ? call
                           : program.origin({call.module, call.call->function}, Api::loss);
        if (!made || program.string(made.keyword("reduction")).value_or("") != "sum") continue;
        Finding& finding = report.at(made.ref(), Confidence::likely,
                                     "a summed loss under DDP: gradients are averaged over ranks, "
                                     "so they are world size times "
                                     "smaller than those of one process with the whole batch");
        finding.severity = Severity::warning;
        finding.help =
            "Use reduction=\"mean\", or multiply by the world size and divide by the global count.";
      }
    }
  for (const CallRef& scheduler : program.calls(Api::scheduler))
    for (const std::string_view name : {"total_steps", "steps_per_epoch", "T_max"}) {
      const Ref steps = scheduler.keyword(name);
      if (!steps || steps.kind() != Kind::binary ||
          steps.module->tree()[steps.node].op != Op::floor_divide)
        continue;
      const std::string_view text = steps.text();
      if (!facts::contains(text, "len(") || !facts::contains(text, "batch") ||
          facts::contains(text, "world") || facts::contains(text, "loader"))
        continue;
      Finding& finding = report.at(steps, Confidence::likely,
                                   "the schedule counts the steps of one process: each rank makes "
                                   "world size times fewer, so the "
                                   "schedule never ends");
      finding.severity = Severity::warning;
      finding.help = "Use len(loader), or divide by the world size.";
    }
}

}  // namespace bench::pitfalls
