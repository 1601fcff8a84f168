#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Kind;
using diagnose::Wrap;
using diagnose::Wrapper;

namespace {

// Something in the program or its launch lines speaks of a second node.
bool expects_nodes(const Program& program) {
  for (const auto& launch : program.launches())
    if (launch.nodes().value_or(1) > 1) return true;
  for (const char* word : {"nnodes", "num_nodes", "node_rank", "n_nodes", "SLURM", "slurm",
                           "submitit", "--nodes", "% torch.cuda.device_count()"})
    if (program.mentions(word)) return true;
  return false;
}

}  // namespace

void check_wrong_rank_as_device_index(const Program& program, Report& report) {
  if (!facts::is_distributed(program)) return;
  const bool single = facts::is_single_node(program) || !expects_nodes(program);
  const auto is_global = [&](Ref rank) {
    return rank && program.is_rank(rank) && !program.is_local_rank(rank) &&
           !program.is_spawn_rank(rank);
  };
  const auto flag = [&](Ref where) {
    Finding& finding = report.at(where, Confidence::likely,
                                 "the global rank is used as a device index: on the second node "
                                 "there is no such GPU (invalid device ordinal)");
    if (single) finding.severity = Severity::info;
    finding.help =
        "Use the local rank: int(os.environ[\"LOCAL_RANK\"]), or rank % torch.cuda.device_count().";
  };
  for (const CallRef& call : program.calls(Api::set_device))
    if (is_global(call.argument(0, "device"))) {
      flag(call.argument(0, "device"));
      return;
    }
  for (const Wrap& wrap : program.wraps()) {
    const Ref ids = wrap.call.argument(1, "device_ids");
    if (wrap.kind != Wrapper::ddp || !ids || ids.kind() != Kind::list ||
        ids.module->tree().child_count(ids.node) != 1)
      continue;
    const Ref index = ids.with(ids.module->tree().child_at(ids.node, 0));
    if (is_global(index)) {
      flag(index);
      return;
    }
    for (const CallRef& placed : facts::placements(program, wrap))
      if (const Ref device = placed.positional(0); is_global(device)) {
        flag(device);
        return;
      }
  }
}

}  // namespace bench::pitfalls
