// Literal values: numbers, strings, lists, arithmetic on them, and the defaults of argparse
// options.
#include "diagnose/model/program.hpp"

#include <charconv>
#include <cstdlib>

namespace bench::diagnose {
namespace {

constexpr int kDepth = 8;
constexpr std::size_t kMaxItems = 64;

Value make_integer(std::int64_t number) {
  Value value;
  value.type = Value::Type::integer;
  value.integer = number;
  return value;
}

Value parse_number(std::string_view text, bool floating) {
  std::string digits;
  for (const char c : text)
    if (c != '_') digits += c;
  Value value;
  if (!floating) {
    const bool hex = digits.starts_with("0x") || digits.starts_with("0X");
    const char* begin = digits.data() + (hex ? 2 : 0);
    const auto [end, error] =
        std::from_chars(begin, digits.data() + digits.size(), value.integer, hex ? 16 : 10);
    if (error == std::errc() && end == digits.data() + digits.size())
      value.type = Value::Type::integer;
    return value;
  }
  value.number = std::strtod(digits.c_str(), nullptr);
  value.type = Value::Type::number;
  return value;
}

Value arithmetic(Op op, const Value& a, const Value& b) {
  using Type = Value::Type;
  Value result;
  result.is_default = a.is_default || b.is_default;
  if (a.type == Type::string && b.type == Type::string && op == Op::add) {
    result.type = Type::string;
    result.string = a.string + b.string;
    return result;
  }
  if (!a.is_integer() || !b.is_integer()) return {};
  std::int64_t out = 0;
  bool overflow = false;
  switch (op) {
    case Op::add:
      overflow = __builtin_add_overflow(a.integer, b.integer, &out);
      break;
    case Op::subtract:
      overflow = __builtin_sub_overflow(a.integer, b.integer, &out);
      break;
    case Op::multiply:
      overflow = __builtin_mul_overflow(a.integer, b.integer, &out);
      break;
    case Op::floor_divide:
    case Op::modulo: {
      if (b.integer <= 0 || a.integer < 0) return {};
      out = op == Op::modulo ? a.integer % b.integer : a.integer / b.integer;
      break;
    }
    case Op::power: {
      if (b.integer < 0 || b.integer > 62) return {};
      out = 1;
      for (std::int64_t i = 0; i < b.integer && !overflow; ++i)
        overflow = __builtin_mul_overflow(out, a.integer, &out);
      break;
    }
    default:
      return {};
  }
  if (overflow) return {};
  result.type = Type::integer;
  result.integer = out;
  return result;
}

class Evaluator {
 public:
  explicit Evaluator(const Program& program) : program_(program) {}

  Value evaluate(Ref at, int depth) {
    if (!at || depth > kDepth) return {};
    const SyntaxTree& tree = at.module->tree();
    Value value;
    switch (at.kind()) {
      case Kind::integer:
        return parse_number(at.text(), false);
      case Kind::floating:
        return parse_number(at.text(), true);
      case Kind::true_literal:
      case Kind::false_literal:
        value.type = Value::Type::boolean;
        value.integer = at.kind() == Kind::true_literal ? 1 : 0;
        return value;
      case Kind::none_literal:
        value.type = Value::Type::none;
        return value;
      case Kind::string:
      case Kind::concatenated_string:
        if (auto text = tree.string_value(at.node)) {
          value.type = Value::Type::string;
          value.string = std::move(*text);
        }
        return value;
      case Kind::list:
      case Kind::tuple:
      case Kind::set:
        return evaluate_list(at, depth);
      case Kind::comprehension:
        return evaluate_comprehension(at, depth);
      case Kind::unary:
        return evaluate_unary(at, depth);
      case Kind::binary:
        return arithmetic(tree[at.node].op, evaluate(at.child(Field::left), depth + 1),
                          evaluate(at.child(Field::right), depth + 1));
      case Kind::identifier:
      case Kind::attribute:
      case Kind::conditional:
      case Kind::boolean:
      case Kind::call:
      case Kind::subscript:
        return evaluate_sources(at, depth);
      default:
        return {};
    }
  }

 private:
  Value evaluate_list(Ref at, int depth) {
    Value value;
    const SyntaxTree& tree = at.module->tree();
    for (NodeId item = tree[at.node].first_child; item != kNoNode; item = tree[item].next_sibling) {
      if (tree[item].kind == Kind::list_splat || value.items.size() >= kMaxItems) return {};
      value.items.push_back(evaluate(at.with(item), depth + 1));
    }
    value.type = Value::Type::list;
    return value;
  }

  // [i for i in range(4)]: the items as they are.
  Value evaluate_comprehension(Ref at, int depth) {
    const SyntaxTree& tree = at.module->tree();
    const Ref body = at.child(Field::body);
    const NodeId clause = tree.child_at(at.node, 1);
    if (body.kind() != Kind::identifier || tree.child_count(at.node) != 2 ||
        tree[clause].kind != Kind::for_in_clause ||
        tree.text(tree.child(clause, Field::left)) != body.text())
      return {};
    Value items = evaluate(at.with(tree.child(clause, Field::right)), depth + 1);
    return items.type == Value::Type::list ? items : Value{};
  }

  Value evaluate_unary(Ref at, int depth) {
    Value value = evaluate(at.child(Field::argument), depth + 1);
    if (at.module->tree()[at.node].op != Op::subtract) return {};
    value.integer = -value.integer;
    value.number = -value.number;
    return value.type == Value::Type::integer || value.type == Value::Type::number ? value
                                                                                   : Value{};
  }

  // A name has a value when everything that reaches it has the same one.
  Value evaluate_sources(Ref at, int depth) {
    Value agreed;
    bool first = true;
    for (const Source& source : program_.sources(at)) {
      Value value;
      if (source.how == Source::How::argument) {
        value = evaluate_argument(source.ref, depth);
      } else if (source.how == Source::How::value) {
        value = source.ref == at ? evaluate_call(at, depth) : evaluate(source.ref, depth + 1);
      }
      if (!value.known()) return {};
      if (first) {
        agreed = std::move(value);
        first = false;
      } else if (agreed.type != value.type || agreed.integer != value.integer ||
                 agreed.string != value.string || agreed.number != value.number) {
        return {};
      }
    }
    return agreed;
  }

  Value evaluate_argument(Ref add_argument, int depth) {
    const CallRef call = program_.as_call(add_argument);
    Value value = evaluate(call.keyword("default"), depth + 1);
    if (!value.known()) {
      const std::string action = program_.string(call.keyword("action")).value_or("");
      if (action != "store_true" && action != "store_false") return {};
      value.type = Value::Type::boolean;
      value.integer = action == "store_false" ? 1 : 0;
    }
    value.is_default = true;
    return value;
  }

  // int("4"), len([1, 2]), list(range(4)), range(4), range(1, 4)
  Value evaluate_call(Ref at, int depth) {
    const CallRef call = program_.as_call(at);
    if (!call || call.module->tree()[call.call->function].kind != Kind::identifier) return {};
    const Value inner = evaluate(call.positional(0), depth + 1);
    if (call.call->name == "int" && inner.is_integer()) return inner;
    if (call.call->name == "len" && inner.type == Value::Type::list)
      return make_integer(static_cast<std::int64_t>(inner.items.size()));
    if (call.call->name == "list" && inner.type == Value::Type::list) return inner;
    if (call.call->name == "range" && inner.is_integer() && !call.positional(2)) {
      const bool has_start = static_cast<bool>(call.positional(1));
      const Value stop = has_start ? evaluate(call.positional(1), depth + 1) : inner;
      const std::int64_t start = has_start ? inner.integer : 0;
      if (!stop.is_integer() || start < 0 || stop.integer < start ||
          stop.integer - start > static_cast<std::int64_t>(kMaxItems))
        return {};
      Value value;
      value.type = Value::Type::list;
      value.is_default = inner.is_default || stop.is_default;
      for (std::int64_t i = start; i < stop.integer; ++i) value.items.push_back(make_integer(i));
      return value;
    }
    return {};
  }

  const Program& program_;
};

}  // namespace

Value Program::evaluate(Ref expression) const { return Evaluator(*this).evaluate(expression, 0); }

std::optional<std::int64_t> Program::integer(Ref expression) const {
  const Value value = evaluate(expression);
  return value.is_integer() ? std::optional(value.integer) : std::nullopt;
}

std::optional<std::string> Program::string(Ref expression) const {
  Value value = evaluate(expression);
  return value.is_string() ? std::optional(std::move(value.string)) : std::nullopt;
}

}  // namespace bench::diagnose
