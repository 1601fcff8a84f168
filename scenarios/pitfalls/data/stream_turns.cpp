#include "scenarios/pitfalls/data/stream_turns.hpp"

#include "scenarios/pitfalls/data/loaders.hpp"
#include "scenarios/pitfalls/data/node_shares.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;
using diagnose::NodeId;

bool asks_for_turn(const Program& program, Ref condition) {
  const auto& tree = condition.module->tree();
  if (condition.kind() != Kind::comparison || tree.child_count(condition.node) != 2) return false;
  const Ref left = condition.with(tree.child_at(condition.node, 0));
  const Ref right = condition.with(tree.child_at(condition.node, 1));
  const bool compares = tree[condition.node].op == diagnose::Op::not_equal ||
                        tree[condition.node].op == diagnose::Op::equal;
  return compares && left.kind() == Kind::binary && tree[left.node].op == diagnose::Op::modulo &&
         program.is_world_size(left.child(Field::right)) &&
         (program.is_rank(right) || program.is_local_rank(right));
}

namespace {

// islice(items, rank, None, world_size)
bool deals_in_turn(const Program& program, const CallRef& call) {
  const Ref start = call.positional(1);
  const Ref step = call.positional(3);
  return call.call->name == "islice" && step && program.is_world_size(step) &&
         (program.is_rank(start) || program.is_local_rank(start));
}

// The stream starts anew, or is cut to whole turns: all ranks get as many items.
bool evens_out(std::string_view body) {
  return holds_any(body, {"while True", "while 1:", "//", "cycle(", "repeat(", "total_size",
                          "num_samples", "drop_last", "worker_info", "count(", ") % "});
}

// The same of what it goes over: for item in forever().
bool goes_over_endless(const Program& program, Ref body) {
  for (const CallRef& call : facts::calls_in(body))
    if (const diagnose::FunctionRef helper = program.callee(call))
      if (holds_any(helper.module->text(helper.function->body),
                    {"while True", "while 1:", "count(", "cycle("}))
        return true;
  return false;
}

// What deals the items out in the body.
Ref turn_in(const Program& program, Ref body) {
  const diagnose::Module& module = *body.module;
  const auto& tree = module.tree();
  for (const NodeId node : module.nodes_of(Kind::if_statement)) {
    const Ref condition = body.with(node).child(Field::condition);
    if (tree.contains(body.node, node) && condition && asks_for_turn(program, condition))
      return condition;
  }
  for (const CallRef& call : facts::calls_in(body))
    if (deals_in_turn(program, call)) return call.ref();
  return {};
}

}  // namespace

std::vector<Ref> turns_of_streams(const Program& program) {
  std::vector<Ref> out;
  for (const diagnose::TrainingLoop& loop : program.training_loops()) {
    if (stops_at_a_step(program, loop.batches)) continue;
    for (const CallRef& loader : loaders_of(program, loop.iterable)) {
      if (has_some_sampler(program, loader) || is_evaluation_loader(program, loader)) continue;
      const diagnose::ClassRef data = program.class_of(loader.argument(0, "dataset"));
      const diagnose::FunctionRef items =
          data ? program.method(data, "__iter__") : diagnose::FunctionRef{};
      if (!items || evens_out(items.module->text(items.function->body))) continue;
      if (goes_over_endless(program, {items.module, items.function->body})) continue;
      const Ref turn = turn_in(program, {items.module, items.function->body});
      if (turn && std::find(out.begin(), out.end(), turn) == out.end()) out.push_back(turn);
    }
  }
  return out;
}

}  // namespace bench::pitfalls
