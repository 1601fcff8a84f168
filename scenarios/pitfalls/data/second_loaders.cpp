#include "scenarios/pitfalls/data/second_loaders.hpp"

#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <string_view>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::TrainingLoop;

namespace {

void add_once(const std::vector<CallRef>& loaders, std::vector<CallRef>& out) {
  for (const CallRef& loader : loaders)
    if (std::none_of(out.begin(), out.end(),
                     [&](const CallRef& known) { return known.ref() == loader.ref(); }))
      out.push_back(loader);
}

// for a, b in zip(first, second), also inside enumerate() and tqdm().
void add_zipped(const Program& program, Ref batches, std::vector<CallRef>& out) {
  const Ref over = batches.child(Field::right);
  if (!over) return;
  for (const CallRef& call : facts::calls_in(over)) {
    if (call.call->name != "zip") continue;
    for (std::size_t i = 0; const Ref each = call.positional(i); ++i)
      add_once(loaders_of(program, each), out);
  }
}

// if step % 500 == 0: show(next(fixed)), on one rank or without gradients: nothing is trained on
// it.
bool only_looks(const Program& program, const CallRef& drawn, Ref batches) {
  if (program.is_evaluation(drawn.ref()) || program.under_no_grad(drawn.ref()) ||
      program.guarded_by_rank(drawn.ref()) != diagnose::RankTest::none)
    return true;
  const auto guards = program.guards(drawn.ref());
  return std::any_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
    return guard.condition.module == batches.module &&
           batches.module->tree().contains(batches.node, guard.condition.node);
  });
}

// batch = next(it) in the loop, where it trains on what it draws.
void add_drawn(const Program& program, Ref batches, std::vector<CallRef>& out) {
  for (const std::string_view name : {"next", "__next__"})
    for (const CallRef& call : program.calls_named(name)) {
      if (call.module != batches.module ||
          !batches.module->tree().contains(batches.node, call.call->node) ||
          only_looks(program, call, batches))
        continue;
      const Ref it = call.receiver() ? call.receiver() : call.positional(0);
      if (it) add_once(loaders_of(program, it), out);
    }
}

}  // namespace

std::vector<CallRef> loaders_passed_over(const Program& program, const TrainingLoop& loop) {
  std::vector<CallRef> out;
  add_once(loaders_of(program, loop.iterable), out);
  if (loop.batches) add_zipped(program, loop.batches, out);
  return out;
}

std::vector<CallRef> loaders_of_training(const Program& program, const TrainingLoop& loop) {
  std::vector<CallRef> out = loaders_passed_over(program, loop);
  if (loop.batches) add_drawn(program, loop.batches, out);
  return out;
}

}  // namespace bench::pitfalls
