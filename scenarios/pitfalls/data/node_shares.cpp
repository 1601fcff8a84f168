#include "scenarios/pitfalls/data/node_shares.hpp"

#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Kind;
using diagnose::NodeId;

bool stops_at_a_step(const Program& program, Ref loop) {
  if (loop.kind() != Kind::for_statement) return true;
  const Ref given = loop.child(diagnose::Field::right);
  if (says_any(given.text(), {"islice", "range(", "max_steps", "steps_per_epoch"})) return true;
  if (facts::has_break(program, loop)) return true;
  const auto& returns = loop.module->nodes_of(Kind::return_statement);
  return std::any_of(returns.begin(), returns.end(), [&](NodeId at) {  // if step >= last: return
    return loop.module->tree().contains(loop.node, at) &&
           loop.module->function_of(at) == loop.module->function_of(loop.node);
  });
}

namespace {

// The number of samples that the ranks share out is chosen, and may well divide, or has no end:
// data.take(n), data.select(range(n)), data.repeat(None), cycle(data).
bool is_equalized(const Program& program, const std::vector<Ref>& behind_data) {
  return program.mentions("drop_last_batch") ||
         std::any_of(behind_data.begin(), behind_data.end(), [&](Ref made) {
           const std::string_view name = program.as_call(made).call->name;
           return name == "take" || name == "repeat" || name == "cycle" || name == "islice" ||
                  name == "RepeatDataset" || name == "select";
         });
}

// data.shard(num_shards=world_size, index=rank) of a data set of Hugging Face
bool deals_to_ranks(const Program& program, const CallRef& shard) {
  const Ref count = shard.argument(0, "num_shards");
  const Ref index = shard.argument(1, "index");
  return shard.receiver() && program.imports("datasets") && count && index &&
         program.is_world_size(count) && (program.is_rank(index) || program.is_local_rank(index)) &&
         !program.is_evaluation(shard.ref());
}

}  // namespace

std::vector<CallRef> shares_read_to_end(const Program& program) {
  std::vector<CallRef> out;
  const auto by_node = program.calls_named("split_dataset_by_node");
  std::vector<CallRef> splits(by_node.begin(), by_node.end());
  for (const CallRef& shard : program.calls_named("shard"))
    if (deals_to_ranks(program, shard)) splits.push_back(shard);
  if (splits.empty()) return out;
  for (const diagnose::TrainingLoop& loop : program.training_loops()) {
    if (stops_at_a_step(program, loop.batches)) continue;
    for (const CallRef& loader : loaders_of(program, loop.iterable)) {
      if (has_some_sampler(program, loader) || is_evaluation_loader(program, loader)) continue;
      const auto behind = facts::calls_behind(program, loader.argument(0, "dataset"));
      if (is_equalized(program, behind)) continue;
      for (const CallRef& split : splits)
        if (std::find(behind.begin(), behind.end(), split.ref()) != behind.end() &&
            std::find_if(out.begin(), out.end(), [&](const CallRef& each) {
              return each.ref() == split.ref();
            }) == out.end())
          out.push_back(split);
    }
  }
  return out;
}

}  // namespace bench::pitfalls
