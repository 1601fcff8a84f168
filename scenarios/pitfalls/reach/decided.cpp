#include "scenarios/pitfalls/reach/decided.hpp"

namespace bench::pitfalls::facts {

using diagnose::Field;
using diagnose::Kind;
using diagnose::Op;
using diagnose::Value;

namespace {

std::optional<double> number_in(const Value& value) {
  if (value.type == Value::Type::integer) return static_cast<double>(value.integer);
  return value.type == Value::Type::number ? std::optional(value.number) : std::nullopt;
}

std::optional<bool> truth_of(const Value& value) {
  using Type = Value::Type;
  switch (value.type) {
    case Type::none:
      return false;
    case Type::boolean:
    case Type::integer:
      return value.integer != 0;
    case Type::number:
      return value.number != 0;
    case Type::string:
      return !value.string.empty();
    default:
      return std::nullopt;
  }
}

std::optional<bool> is_one_of(const Value& value, const Value& list) {
  if (list.type != Value::Type::list) return std::nullopt;
  for (const Value& item : list.items) {
    const auto same = same_value(value, item);
    if (!same || *same) return same;
  }
  return false;
}

std::optional<bool> negated(std::optional<bool> of) { return of ? std::optional(!*of) : of; }

std::optional<bool> compared_as(Op op, const Value& value, const Value& other) {
  const auto a = number_in(value);
  const auto b = number_in(other);
  const bool numbers = a && b;
  switch (op) {
    case Op::equal:
    case Op::is:
      return same_value(value, other);
    case Op::not_equal:
    case Op::is_not:
      return negated(same_value(value, other));
    case Op::in:
      return is_one_of(value, other);
    case Op::not_in:
      return negated(is_one_of(value, other));
    case Op::less:
      return numbers ? std::optional(*a < *b) : std::nullopt;
    case Op::less_equal:
      return numbers ? std::optional(*a <= *b) : std::nullopt;
    case Op::greater:
      return numbers ? std::optional(*a > *b) : std::nullopt;
    case Op::greater_equal:
      return numbers ? std::optional(*a >= *b) : std::nullopt;
    default:
      return std::nullopt;
  }
}

bool is_written_out(Ref part, int depth = 0) {
  constexpr int kSigns = 8;  // - - 1
  if (depth > kSigns) return false;
  switch (part.kind()) {
    case Kind::string:
    case Kind::integer:
    case Kind::floating:
    case Kind::true_literal:
    case Kind::false_literal:
    case Kind::none_literal:
    case Kind::list:
    case Kind::tuple:
    case Kind::set:
      return true;
    case Kind::unary:
      return is_written_out(part.child(Field::argument), depth + 1);
    default:
      return false;
  }
}

// One side is known and the other written out.
std::optional<bool> decided_comparison(const Program& program, Ref condition,
                                       const ValueOf& value_of) {
  const auto& tree = condition.module->tree();
  if (tree.child_count(condition.node) != 2) return std::nullopt;
  const Ref left = condition.with(tree.child_at(condition.node, 0));
  const Ref right = condition.with(tree.child_at(condition.node, 1));
  const Op op = tree[condition.node].op;
  if (is_written_out(left) == is_written_out(right)) return std::nullopt;
  const bool known_left = is_written_out(right);
  const auto known = value_of(known_left ? left : right);
  if (!known) return std::nullopt;
  const Value written = program.evaluate(known_left ? right : left);
  return known_left ? compared_as(op, *known, written) : compared_as(op, written, *known);
}

}  // namespace

std::optional<bool> same_value(const Value& a, const Value& b) {
  using Type = Value::Type;
  if (!a.known() || !b.known()) return std::nullopt;
  if (a.type == Type::none || b.type == Type::none) return a.type == b.type;
  if (const auto x = number_in(a), y = number_in(b); x && y) return *x == *y;
  if (a.type != b.type) return std::nullopt;
  if (a.type == Type::string) return a.string == b.string;
  return a.type == Type::boolean ? std::optional(a.integer == b.integer) : std::nullopt;
}

namespace {

constexpr int kDeepest = 64;  // a condition that people write; not not not ... x

std::optional<bool> decided_at(const Program& program, Ref condition, const ValueOf& value_of,
                               int depth) {
  if (depth > kDeepest) return std::nullopt;
  const auto& node = condition.module->tree()[condition.node];
  switch (node.kind) {
    case Kind::identifier:
    case Kind::attribute:
    case Kind::subscript:
    case Kind::call:
    case Kind::binary: {
      const auto value = value_of(condition);
      return value ? truth_of(*value) : std::nullopt;
    }
    case Kind::not_expression:
      return negated(decided_at(program, condition.child(Field::argument), value_of, depth + 1));
    case Kind::comparison:
      return decided_comparison(program, condition, value_of);
    case Kind::boolean: {
      const auto left = decided_at(program, condition.child(Field::left), value_of, depth + 1);
      const auto right = decided_at(program, condition.child(Field::right), value_of, depth + 1);
      const bool settles = node.op == Op::logical_or;  // one true part of an `or`, or both known
      if (left == settles || right == settles) return settles;
      return left && right ? std::optional(!settles) : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<bool> decided(const Program& program, Ref condition, const ValueOf& value_of) {
  return decided_at(program, condition, value_of, 0);
}

std::optional<Value> decided_value(const Program& program, Ref condition, const ValueOf& value_of) {
  const auto holds = decided(program, condition, value_of);
  if (!holds) return std::nullopt;
  Value out;
  out.type = Value::Type::boolean;
  out.integer = *holds ? 1 : 0;
  return out;
}

std::optional<bool> decided(const Program& program, Ref condition, std::string_view name,
                            const Value& value) {
  return decided(program, condition, [&](Ref part) {
    const bool is_name = diagnose::stands_for_object(part);
    const bool named = is_name && part.text() == name;
    return named ? std::optional(value) : std::nullopt;
  });
}

}  // namespace bench::pitfalls::facts
