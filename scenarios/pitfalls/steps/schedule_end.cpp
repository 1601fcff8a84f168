#include "scenarios/pitfalls/steps/schedule_end.hpp"

#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;
using diagnose::NodeId;
using diagnose::Op;

namespace {

struct LengthArgument {
  std::string_view scheduler;  // the end of its name
  std::size_t index;
  std::string_view keyword;
};

// get_scheduler() has its length at another place in each library.
constexpr std::size_t kByKeywordOnly = 99;
constexpr LengthArgument kLengths[] = {{"CosineAnnealingLR", 1, "T_max"},
                                       {"OneCycleLR", 2, "total_steps"},
                                       {"PolynomialLR", 1, "total_iters"},
                                       {"schedule_with_warmup", 2, "num_training_steps"},
                                       {"restarts_schedule_with_warmup", 2, "num_training_steps"},
                                       {"", kByKeywordOnly, "num_training_steps"},
                                       {"", kByKeywordOnly, "T_max"},
                                       {"", kByKeywordOnly, "total_steps"}};

Ref length_given(const CallRef& scheduler) {
  for (const LengthArgument& each : kLengths)
    if (scheduler.call->name.ends_with(each.scheduler))
      if (const Ref given = scheduler.argument(each.index, each.keyword)) return given;
  return {};
}

// args.gradient_accumulation_steps, cfg.grad_accum, accelerator.gradient_accumulation_steps.
bool is_accumulation(Ref factor) {
  return diagnose::stands_for_object(factor) && says_any(factor.text(), {"accum", "grad_acc"});
}

// What the expression is computed from in one step: the factor beside the accumulation, what int()
// is given, and the only value of a name that is such a thing.
Ref computed_from(const Program& program, Ref value, bool& times_accumulation) {
  if (value.kind() == Kind::binary && value.module->tree()[value.node].op == Op::multiply) {
    const Ref left = value.child(Field::left);
    const Ref right = value.child(Field::right);
    if (is_accumulation(left) == is_accumulation(right)) return {};
    times_accumulation = true;
    return is_accumulation(left) ? right : left;
  }
  if (const CallRef call = program.as_call(value))
    return call.call->name == "int" && !call.positional(1) ? call.positional(0) : Ref{};
  return {};
}

// steps = epochs * per_epoch after per_epoch = ceil(len(loader) / k): batches are counted, also by
// way of names.
bool counts_batches(const Program& program, Ref number, int depth = 0) {
  constexpr int kNames = 3;
  const auto& tree = number.module->tree();
  if (facts::contains(number.text(), "len(")) return true;
  if (depth >= kNames) return false;
  for (NodeId at = number.node; at < tree[number.node].last; ++at) {
    const Ref part = number.with(at);
    if (!diagnose::stands_for_object(part) || part.kind() == Kind::subscript) continue;
    for (const diagnose::Source& source : program.sources(part))
      if (source.how == diagnose::Source::How::value && source.ref != part &&
          (source.ref.kind() == Kind::binary || source.ref.kind() == Kind::call) &&
          counts_batches(program, source.ref, depth + 1))
        return true;
  }
  return false;
}

bool is_counted_from_batches(const Program& program, Ref steps) {
  const auto& sources = program.sources(steps);
  return std::any_of(
      sources.begin(), sources.end(),
      [&](const diagnose::Source& source) { return counts_batches(program, source.ref); });
}

// total for total = args.steps * args.accumulation, which the loop does not ask about.
Ref only_product(const Program& program, Ref name) {
  const auto& sources = program.sources(name);
  if (name.kind() != Kind::identifier || sources.size() != 1 ||
      sources.front().how != diagnose::Source::How::value)
    return {};
  const Ref value = sources.front().ref;
  bool times = false;
  const Ref part = value.module == name.module ? computed_from(program, value, times) : Ref{};
  return part && times ? value : Ref{};
}

// for step in range(args.steps), with the node straight in it.
bool takes_so_many_rounds(const Program& program, Ref loop, Ref steps) {
  if (loop.kind() != Kind::for_statement) return false;
  const CallRef range = program.as_call(program.strip_iterable(loop.child(Field::right)));
  if (!range || range.call->name != "range" || range.positional(2)) return false;
  const Ref end = range.positional(1) ? range.positional(1) : range.positional(0);
  return end && end.text() == steps.text();
}

}  // namespace

ScheduleEnd end_of_schedule(const Program& program, const CallRef& scheduler) {
  constexpr int kDeepest = 6;
  ScheduleEnd end;
  Ref at = length_given(scheduler);
  for (int depth = 0; at && depth < kDeepest; ++depth) {
    if (!diagnose::stands_for_object(at)) {
      at = computed_from(program, at, end.times_accumulation);
    } else if (is_counted_from_batches(program, at)) {
      return {};
    } else if (const Ref product = only_product(program, at)) {
      at = product;
    } else {
      end.steps = at;
      return end;
    }
  }
  return {};
}

bool ends_at(const Program& program, Ref node, Ref steps) {
  const auto& tree = node.module->tree();
  const auto loops = program.loops_around(node);
  if (loops.empty() || loops.back().module != node.module) return false;
  if (loops.front().module == node.module && takes_so_many_rounds(program, loops.front(), steps))
    return true;
  for (const NodeId at : node.module->nodes_of(Kind::comparison)) {
    if (!tree.contains(loops.back().node, at) || tree.child_count(at) != 2) continue;
    const NodeId test = tree[at].parent;
    const bool decides =
        tree[test].kind == Kind::while_statement ||
        (tree[test].kind == Kind::if_statement && facts::contains(tree.text(test), "break"));
    if (decides && tree.text(tree.child_at(at, 1)) == steps.text()) return true;
  }
  return false;
}

}  // namespace bench::pitfalls
