#include "diagnose/model/one_process.hpp"

#include <algorithm>

namespace bench::diagnose {

namespace {

constexpr int kDepth = 6;

// The branch that a run of one process takes: under `not distributed`, the else of
// `is_available() and local_rank != -1`, the else of `world_size > 1`.
bool says_one_process(const Program& program, Ref condition, bool holds, int depth = 0) {
  if (depth > kDepth) return false;
  const SyntaxTree& tree = condition.module->tree();
  const Op op = tree[condition.node].op;
  if (condition.kind() == Kind::not_expression)
    return says_one_process(program, condition.child(Field::argument), !holds, depth + 1);
  if (condition.kind() == Kind::boolean) {
    const Ref left = condition.child(Field::left);
    const Ref right = condition.child(Field::right);
    const bool tells_left = says_one_process(program, left, holds, depth + 1);
    const bool tells_right = says_one_process(program, right, holds, depth + 1);
    if ((op == Op::logical_and) == holds) return tells_left || tells_right;
    const auto may_be = [](Ref part) { return part.text().ends_with("is_available()"); };
    return (tells_left || may_be(left)) && (tells_right || may_be(right)) &&
           (tells_left || tells_right);
  }
  if (!program.is_distributed_flag(condition) || program.rank_test(condition) != RankTest::none)
    return false;
  if (condition.kind() != Kind::comparison) return !holds;
  if (tree.child_count(condition.node) != 2) return false;
  if (program.is_literal_true(condition.with(tree.child_at(condition.node, 1)))) return !holds;
  const bool asks_for_one =
      op == Op::equal || op == Op::is || op == Op::less || op == Op::less_equal;
  return holds == asks_for_one;
}

}  // namespace

bool is_of_one_process(const Program& program, Ref node) {
  const auto guards = program.guards(node);
  return std::any_of(guards.begin(), guards.end(), [&](const Guard& guard) {
    return says_one_process(program, guard.condition, guard.holds);
  });
}

}  // namespace bench::diagnose
