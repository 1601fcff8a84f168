#include "scenarios/pitfalls/data/rest_of_division.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Field;
using diagnose::Kind;

namespace {

// rank < world_size - 1, == and !=: whether this is the last rank.
bool asks_for_last_rank(const Program& program, Ref condition) {
  const auto& tree = condition.module->tree();
  if (condition.kind() != Kind::comparison || tree.child_count(condition.node) != 2) return false;
  const Ref rank = condition.with(tree.child_at(condition.node, 0));
  const Ref last = condition.with(tree.child_at(condition.node, 1));
  return program.is_rank(rank) && last.kind() == Kind::binary &&
         tree[last.node].op == diagnose::Op::subtract &&
         program.is_world_size(last.child(Field::left)) && last.child(Field::right).text() == "1";
}

}  // namespace

bool gives_rest_to_last(const Program& program, Ref start, Ref end) {
  if (end.kind() != Kind::identifier || !program.comes_from_rank(start)) return false;
  const auto& defs = end.module->defs_of(end.text(), false);
  return std::any_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
    const Ref value = end.with(end.module->defs()[index].value);
    if (!value || program.enclosing_function(value) != program.enclosing_function(end))
      return false;
    if (value.kind() == Kind::conditional)
      return asks_for_last_rank(program, value.with(end.module->tree().child_at(value.node, 1)));
    const auto guards = program.guards(value);
    return std::any_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
      return asks_for_last_rank(program, guard.condition);
    });
  });
}

bool cuts_with_rest(const Program& program, Ref slice) {
  const auto& tree = slice.module->tree();
  return slice.kind() == Kind::slice && tree.child_count(slice.node) == 2 &&
         gives_rest_to_last(program, slice.with(tree.child_at(slice.node, 0)),
                            slice.with(tree.child_at(slice.node, 1)));
}

}  // namespace bench::pitfalls
