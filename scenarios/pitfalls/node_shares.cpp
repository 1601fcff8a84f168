#include "scenarios/pitfalls/node_shares.hpp"

#include "scenarios/pitfalls/facts.hpp"
#include "scenarios/pitfalls/loaders.hpp"
#include "scenarios/pitfalls/words.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Kind;
using diagnose::NodeId;

namespace {

// if step >= max_steps: break, or a number of steps that all ranks are given.
bool stops_at_a_step(const Program& program, Ref loop) {
  if (loop.kind() != Kind::for_statement) return true;
  const Ref given = loop.child(diagnose::Field::right);
  if (says_any(given.text(), {"islice", "range(", "max_steps", "steps_per_epoch"})) return true;
  const auto& tree = loop.module->tree();
  for (NodeId at = loop.node; at < tree[loop.node].last; ++at)
    if (tree[at].kind == Kind::break_statement && program.innermost_loop(loop.with(at)) == loop)
      return true;
  return false;
}

// The number of samples that the ranks share out is known to divide: it is cut before.
bool is_equalized(const Program& program) {
  for (const char* word : {"islice", "cycle(", ".repeat(", ".take(", "drop_last_batch",
                           "RepeatDataset", "StatefulDataLoader"})
    if (program.mentions(word)) return true;
  return false;
}

}  // namespace

std::vector<CallRef> shares_read_to_end(const Program& program) {
  std::vector<CallRef> out;
  const auto splits = program.calls_named("split_dataset_by_node");
  if (splits.empty() || is_equalized(program)) return out;
  for (const diagnose::TrainingLoop& loop : program.training_loops()) {
    if (stops_at_a_step(program, loop.batches)) continue;
    for (const CallRef& loader : loaders_of(program, loop.iterable)) {
      if (has_some_sampler(program, loader) || is_evaluation_loader(program, loader)) continue;
      const auto behind = facts::calls_behind(program, loader.argument(0, "dataset"));
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
