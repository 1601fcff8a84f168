#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/edits.hpp"
#include "scenarios/pitfalls/facts.hpp"

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::RankTest;

namespace {

bool is_checkpoint(const Program& program, const CallRef& load) {
  // Bytes that came from another rank, not a file of a past run.
  for (const auto& source : program.sources(load.argument(0, "f")))
    if (facts::contains(source.ref.text(), "BytesIO")) return false;
  const std::string text = facts::lowered(load.module->text(load.call->node)) + " " +
                           facts::lowered(program.assigned_name(load.ref()));
  for (const std::string_view word :
       {"ckpt", "checkpoint", "model", "state", "weight", "resume", "pretrain", "snapshot", "best"})
    if (facts::contains(text, word)) return true;
  const auto& tree = load.module->tree();
  return facts::contains(tree.text(statement_of(load.ref()).node), "load_state_dict");
}

// `if args.gpu is None`: the branch of a script that is not bound to a GPU.
bool without_gpu(const Program& program, Ref node) {
  return program.under(node, [&](Ref condition, bool holds) {
    const std::string_view text = condition.text();
    return holds && facts::contains(text, " is None") && facts::contains(text, "gpu");
  });
}

}  // namespace

void check_load_without_map_location(const Program& program, Report& report) {
  if (!facts::is_distributed(program) || program.framework_distributes()) return;
  if (!program.mentions("cuda") && !program.uses(Api::set_device) && !facts::uses_nccl(program))
    return;
  for (const CallRef& load : program.calls(Api::torch_load)) {
    if (load.argument(1, "map_location") || load.has_splat() || !is_checkpoint(program, load))
      continue;
    if (program.guarded_by_rank(load.ref()) != RankTest::none || without_gpu(program, load.ref()))
      continue;
    if (facts::only_without_distribution(program, load.ref()) ||
        !facts::is_reachable(program, load.ref()))
      continue;
    Finding& finding = report.at(
        load.ref(), Confidence::likely,
        "torch.load restores tensors to the GPU they were saved from: all ranks fill GPU 0");
    finding.help = "Pass map_location=\"cpu\", or f\"cuda:{local_rank}\".";
    add_argument(load, "map_location=\"cpu\"", "Load to the CPU", finding);
  }
}

}  // namespace bench::pitfalls
