#include "scenarios/pitfalls/steps/round_shapes.hpp"

#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/steps/round_data.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;
using diagnose::Op;

namespace {

struct Batch {
  const Program& program;
  VariableNames names;

  bool gives(Ref value) const { return value && meet(with_wholes(variables_in(value)), names); }
};

// x.shape and x.size(), whole or sliced, and one length of them.
struct Shape {
  Ref of;      // x
  Ref length;  // k of x.shape[k] and x.size(k); empty for several lengths
};

Ref object_of_shape(const Program& program, Ref shape) {
  if (shape.kind() == Kind::attribute)
    return shape.child(Field::attribute).text() == "shape" ? shape.child(Field::object) : Ref{};
  const CallRef call = program.as_call(shape);
  return call && call.call->name == "size" ? call.receiver() : Ref{};
}

Shape shape_in(const Program& program, Ref side) {
  if (side.kind() == Kind::subscript) {
    const Ref index = side.child(Field::subscript);
    return {object_of_shape(program, side.child(Field::value)),
            index.kind() == Kind::slice ? Ref{} : index};
  }
  const CallRef call = program.as_call(side);
  return {object_of_shape(program, side), call ? call.argument(0, "dim") : Ref{}};
}

// The number of samples, which is alike on all ranks; of sequences that lie side by side it is the
// second one, which is compared with the size of a batch.
bool is_number_of_samples(const Program& program, const Shape& shape, Ref other) {
  return program.integer(shape.length).value_or(1) == 0 || says_any(other.text(), {"batch", "bs"});
}

// xs.size(0), as many on one rank as on the others
bool is_of_samples(const Program& program, const Shape& shape) {
  return shape.length && program.integer(shape.length).value_or(1) == 0;
}

// image.shape[2:] != label.shape[2:]: two things of the batch, or two lengths of one.
bool compares_two(const Batch& batch, const Shape& left, const Shape& right) {
  if (!batch.gives(left.of) || !batch.gives(right.of)) return false;
  return left.of.text() != right.of.text() ||
         (left.length && right.length && left.length.text() != right.length.text());
}

bool is_of_own_length(const Batch& batch, const Shape& shape, Ref other) {
  return shape.length && batch.gives(shape.of) &&
         !is_number_of_samples(batch.program, shape, other);
}

// x in len(x), x.numel() and x.nelement().
Ref counted_whole(const Program& program, Ref count) {
  const CallRef call = program.as_call(count);
  if (!call) return {};
  if (call.call->name == "len") return call.positional(0);
  return call.call->name == "numel" || call.call->name == "nelement" ? call.receiver() : Ref{};
}

// torch.unique(labels), of which even a full batch may hold one.
bool is_of_kinds(const Program& program, Ref value) {
  const CallRef call = program.as_call(value);
  return call && call.call->name == "unique";
}

// Of which a sample has as many as there are things in it. Labels and targets that stand beside the
// images are as many as those; picked out of the batch they may be of things, too.
bool names_annotations(Ref value) {
  if (says_any(value.text(), {"box", "annot", "instance", "object", "keypoint"})) return true;
  return value.kind() != Kind::identifier && !facts::contains(value.text(), "len") &&
         says_any(value.text(), {"label", "target", "mask", "gt"});
}

// len(boxes) == 0, len(torch.unique(labels)) < 2
bool asks_for_few(const Batch& batch, Op op, Ref count, Ref bound) {
  const auto number = batch.program.integer(bound);
  if (!number || *number < 0 || *number > 2) return false;
  Ref all = counted_whole(batch.program, count);
  if (!all) all = shape_in(batch.program, count).of;
  if (!batch.gives(all)) return false;
  const bool for_none = *number == 0 || (*number == 1 && op == Op::less);
  return is_of_kinds(batch.program, all) ||
         (for_none && op != Op::greater && op != Op::not_equal && names_annotations(all));
}

// if batch is None: continue, where a loader drops samples that it could not read.
bool skips_nothing_given(const Batch& batch, Ref left, Ref right, Ref condition) {
  if (right.kind() != Kind::none_literal || left.kind() != Kind::identifier) return false;
  const Ref loop = batch.program.innermost_loop(condition);
  if (!loop || !says_any(loop.child(Field::right).text(), {"loader", "batches", "dataset"}))
    return false;
  const auto sources = batch.program.sources(left);
  if (sources.size() != 1 || sources.front().how != diagnose::Source::How::loop_item) return false;
  const auto& tree = condition.module->tree();
  const NodeId test = tree.ancestor(condition.node, Kind::if_statement);
  const NodeId branch = test == kNoNode ? kNoNode : tree.child(test, Field::consequence);
  if (branch == kNoNode) return false;
  for (NodeId at = branch; at < tree[branch].last; ++at)
    if (tree[at].kind == Kind::continue_statement) return true;
  return false;
}

bool asks_in(const Batch& batch, Ref part) {
  const auto& tree = part.module->tree();
  if (part.kind() != Kind::comparison || tree.child_count(part.node) != 2) return false;
  const Ref left = part.with(tree.child_at(part.node, 0));
  const Ref right = part.with(tree.child_at(part.node, 1));
  const Op op = tree[part.node].op;
  if (op == Op::is) return skips_nothing_given(batch, left, right, part);
  if (asks_for_few(batch, op, left, right)) return true;
  const Shape first = shape_in(batch.program, left);
  const Shape second = shape_in(batch.program, right);
  if (is_of_samples(batch.program, first) || is_of_samples(batch.program, second)) return false;
  return compares_two(batch, first, second) || is_of_own_length(batch, first, right) ||
         is_of_own_length(batch, second, left);
}

}  // namespace

bool asks_for_shape(const Program& program, Ref condition, Ref round) {
  if (condition.module != round.module ||
      !round.module->tree().contains(round.node, condition.node))
    return false;
  const Batch batch{program, names_of_batch(program, round)};
  if (batch.names.empty()) return false;
  const auto& tree = condition.module->tree();
  for (NodeId at = condition.node; at < tree[condition.node].last; ++at)
    if (asks_in(batch, condition.with(at))) return true;
  return false;
}

}  // namespace bench::pitfalls
