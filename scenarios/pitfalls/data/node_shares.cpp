#include "scenarios/pitfalls/data/node_shares.hpp"

#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

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
  return facts::has_break(program, loop);
}

// The number of samples that the ranks share out is known to divide, or has no end: data.take(n),
// data.repeat(None), cycle(data).
bool is_equalized(const Program& program, const std::vector<Ref>& behind_data) {
  return program.mentions("drop_last_batch") ||
         std::any_of(behind_data.begin(), behind_data.end(), [&](Ref made) {
           const std::string_view name = program.as_call(made).call->name;
           return name == "take" || name == "repeat" || name == "cycle" || name == "islice" ||
                  name == "RepeatDataset";
         });
}

}  // namespace

std::vector<CallRef> shares_read_to_end(const Program& program) {
  std::vector<CallRef> out;
  const auto splits = program.calls_named("split_dataset_by_node");
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
