#include "scenarios/pitfalls/data/rest_of_division.hpp"

#include "scenarios/pitfalls/program/words.hpp"

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

// per_rank * world_size, and a product of such a one, also by way of names.
bool is_multiple_of_ranks(const Program& program, Ref count, int depth = 0) {
  constexpr int kFactors = 4;  // batches * batch, batch -> parameter -> per_rank * world_size
  const auto& sources = program.sources(count);
  return depth < kFactors &&
         std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
           const Ref product = source.ref;
           if (product.kind() != Kind::binary ||
               product.module->tree()[product.node].op != diagnose::Op::multiply)
             return false;
           for (const Ref factor : {product.child(Field::left), product.child(Field::right)})
             if (program.is_world_size(factor) || is_multiple_of_ranks(program, factor, depth + 1))
               return true;
           return false;
         });
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

namespace {

// ceil(n / ranks), (n + ranks - 1) // ranks, n // ranks + 1 and -(-n // ranks), also times
// something: more than there are, so that a slice up to it takes the rest, too.
bool is_rounded_up(const Program& program, Ref count, int depth = 0) {
  constexpr int kFactors = 4;
  const auto& sources = program.sources(count);
  return depth < kFactors &&
         std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
           const Ref at = source.ref;
           if (facts::contains(at.text(), "ceil(")) return true;
           if (at.kind() == Kind::unary) return facts::contains(at.text(), "//");
           if (at.kind() != Kind::binary) return false;
           switch (at.module->tree()[at.node].op) {
             case diagnose::Op::add:
               return true;
             case diagnose::Op::floor_divide: {
               const Ref all = at.child(Field::left);
               return all.kind() == Kind::binary &&
                      all.module->tree()[all.node].op == diagnose::Op::add;
             }
             case diagnose::Op::multiply:
               return is_rounded_up(program, at.child(Field::left), depth + 1) ||
                      is_rounded_up(program, at.child(Field::right), depth + 1);
             default:
               return false;
           }
         });
}

}  // namespace

bool ends_with_a_turn(const Program& program, Ref slice) {
  const auto& tree = slice.module->tree();
  if (slice.kind() != Kind::slice || tree.child_count(slice.node) != 3) return false;
  const Ref end = slice.with(tree.child_at(slice.node, 1));
  return is_multiple_of_ranks(program, end) && !is_rounded_up(program, end);
}

namespace {

// for at in range(0, len(order), turn): the last window has what is left.
bool may_begin_the_rest(const Program& program, Ref begin) {
  const auto& sources = program.sources(begin);
  return std::any_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
    const CallRef range = program.as_call(source.ref);
    if (source.how != diagnose::Source::How::loop_item || !range || range.call->name != "range" ||
        !range.positional(2))
      return false;
    const Ref stop = range.positional(1);
    return stop.kind() != Kind::binary ||
           stop.module->tree()[stop.node].op != diagnose::Op::subtract;
  });
}

// order[at : at + per_rank * world_size], a window of whole turns.
bool is_window_of_turns(const Program& program, Ref cut) {
  const Ref slice = cut.child(Field::subscript);
  if (cut.kind() != Kind::subscript || slice.kind() != Kind::slice) return false;
  const auto& tree = slice.module->tree();
  if (tree.child_count(slice.node) != 2) return false;
  const Ref begin = slice.with(tree.child_at(slice.node, 0));
  const Ref end = slice.with(tree.child_at(slice.node, 1));
  return end.kind() == Kind::binary && tree[end.node].op == diagnose::Op::add &&
         end.child(Field::left).text() == begin.text() && !may_begin_the_rest(program, begin) &&
         is_multiple_of_ranks(program, end.child(Field::right));
}

}  // namespace

bool comes_in_whole_turns(const Program& program, Ref list) {
  const CallRef cut = program.made_by(list);
  if (cut && holds_any(cut.call->name, {"tensor_split", "array_split", "chunk"})) {
    for (std::size_t i = 0; const Ref count = cut.positional(i); ++i)
      if (is_multiple_of_ranks(program, count)) return true;
    return false;
  }
  const auto& sources = program.sources(list);
  const auto is_window = [&](const diagnose::Source& source) {
    return source.how == diagnose::Source::How::value && is_window_of_turns(program, source.ref);
  };
  if (!sources.empty() && std::all_of(sources.begin(), sources.end(), is_window)) return true;
  // One that is filled, and cut into its own name: self.order = self.order[rank::world_size].
  const auto is_cut = [](const diagnose::Source& source) {
    return source.ref.kind() == Kind::subscript;
  };
  return !std::all_of(sources.begin(), sources.end(), is_cut) &&
         std::all_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
           const CallRef made = program.as_call(source.ref);
           return is_cut(source) ||
                  (made && (made.call->name == "zeros" || made.call->name == "empty") &&
                   is_multiple_of_ranks(program, made.positional(0)));
         });
}

}  // namespace bench::pitfalls
