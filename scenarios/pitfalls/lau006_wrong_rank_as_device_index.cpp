#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Kind;
using diagnose::Wrap;
using diagnose::Wrapper;

namespace {

// The script reads the local rank too, so it knows that the two differ; or its name for the value
// says that it ought to be the local one.
bool tells_ranks_apart(const Program& program, Ref rank) {
  for (const char* word : {"LOCAL_RANK\"", "LOCAL_RANK'", "SLURM_LOCALID"})
    if (program.mentions(word)) return true;
  const auto sources = program.sources(rank);
  return facts::contains(facts::lowered(rank.text()), "local_rank") &&
         std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
           const CallRef call = program.as_call(source.ref);
           return program.environment_name(source.ref) == "RANK" ||
                  (call && call.call->name == "get_rank");
         });
}

bool is_global(const Program& program, Ref rank) {
  return rank && program.is_rank(rank) && !program.is_local_rank(rank) &&
         !program.is_spawn_rank(rank);
}

// In one branch of several the index is SLURM_PROCID itself, which counts the tasks of all nodes.
bool is_task_of_job(const Program& program, Ref index) {
  if (index.kind() != Kind::identifier && index.kind() != Kind::attribute) return false;
  const auto sources = program.sources(index);
  return std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
    return source.how == diagnose::Source::How::value &&
           program.environment_name(source.ref) == "SLURM_PROCID";
  });
}

// The global rank in rank, f"cuda:{rank}" or torch.device("cuda", rank), or in what a name holds.
Ref global_rank_in(const Program& program, Ref device, int depth = 0) {
  constexpr int kSteps = 3;  // device -> torch.device(...) -> f"cuda:{rank}"
  if (!device || depth > kSteps) return {};
  if (is_global(program, device) || is_task_of_job(program, device)) return device;
  if (device.kind() == Kind::string) {
    const auto& tree = device.module->tree();
    for (auto at = tree[device.node].first_child; at != diagnose::kNoNode;
         at = tree[at].next_sibling)
      if (is_global(program, device.with(at))) return device;
    return {};
  }
  if (const CallRef call = program.as_call(device); call && call.call->api == Api::torch_device) {
    for (const std::size_t index : {0U, 1U})
      if (global_rank_in(program, call.positional(index), depth + 1)) return device;
    return {};
  }
  const auto sources = program.sources(device);
  if (sources.size() != 1 || sources.front().how != diagnose::Source::How::value ||
      sources.front().ref == device)
    return {};
  return global_rank_in(program, sources.front().ref, depth + 1);
}

// A comment shows how the script is started: torchrun --standalone, --nnodes=1.
bool is_said_to_be_one_node(const Program& program) {
  if (!program.launches().empty()) return false;
  for (const char* word : {"--standalone", "--nnodes=1 ", "--nnodes 1 ", "--nnodes=1\n"})
    if (facts::speaks_of(program, word)) return true;
  return false;
}

}  // namespace

void check_wrong_rank_as_device_index(const Program& program, Report& report) {
  if (!facts::is_distributed(program)) return;
  const auto flag = [&](Ref where) {
    if (!where) return false;
    Finding& finding = report.at(where, Confidence::likely,
                                 "the global rank is used as a device index: on the second node "
                                 "there is no such GPU (invalid device ordinal)");
    if (facts::is_single_node(program) ||
        ((!facts::expects_nodes(program) || is_said_to_be_one_node(program)) &&
         !tells_ranks_apart(program, where)))
      finding.severity = Severity::info;
    finding.help =
        "Use the local rank: int(os.environ[\"LOCAL_RANK\"]), or rank % torch.cuda.device_count().";
    return true;
  };
  for (const CallRef& call : program.calls(Api::set_device))
    if (flag(global_rank_in(program, call.argument(0, "device")))) return;
  for (const Wrap& wrap : program.wraps()) {
    const Ref ids = wrap.call.argument(1, "device_ids");
    if (wrap.kind != Wrapper::ddp || !ids || ids.kind() != Kind::list ||
        ids.module->tree().child_count(ids.node) != 1)
      continue;
    const Ref index = ids.with(ids.module->tree().child_at(ids.node, 0));
    if (flag(global_rank_in(program, index))) return;
    for (const CallRef& placed : facts::placements(program, wrap))
      if (flag(global_rank_in(program, placed.positional(0)))) return;
  }
  // device = torch.device(f"cuda:{rank}") of a script that reads the local rank as well.
  for (const CallRef& device : program.calls(Api::torch_device))
    if (const Ref rank = global_rank_in(program, device.ref());
        rank && tells_ranks_apart(program, rank) && flag(rank))
      return;
}

}  // namespace bench::pitfalls
