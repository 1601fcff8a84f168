#include "diagnose/model/left_bare.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace bench::diagnose {

namespace {

constexpr int kDepth = 6;

std::optional<bool> truth(const Value& value) {
  if (value.is_true() || value.is_false()) return value.is_true();
  if (value.is_integer()) return value.integer != 0;
  if (value.type == Value::Type::none) return false;
  return std::nullopt;
}

std::optional<bool> compared(Op op, const Value& left, const Value& right) {
  if (right.type == Value::Type::none) {
    if (op != Op::is && op != Op::is_not) return std::nullopt;
    return (left.type == Value::Type::none) == (op == Op::is);
  }
  if (!left.is_integer() || !right.is_integer()) return std::nullopt;
  switch (op) {
    case Op::equal:
      return left.integer == right.integer;
    case Op::not_equal:
      return left.integer != right.integer;
    case Op::less:
      return left.integer < right.integer;
    case Op::less_equal:
      return left.integer <= right.integer;
    case Op::greater:
      return left.integer > right.integer;
    case Op::greater_equal:
      return left.integer >= right.integer;
    default:
      return std::nullopt;
  }
}

// Written out in the call: what a name stands for may be another value in another run.
bool is_literal(Ref value) {
  switch (value.kind()) {
    case Kind::integer:
    case Kind::unary:
    case Kind::true_literal:
    case Kind::false_literal:
    case Kind::none_literal:
      return true;
    default:
      return false;
  }
}

// What the helper's condition says for one call of it.
class Outcome {
 public:
  Outcome(const Program& program, FunctionRef helper, const CallRef& call)
      : program_(program), helper_(helper), call_(call) {}

  std::optional<bool> of(Ref condition, int depth = 0) const {
    if (depth > kDepth) return std::nullopt;
    const SyntaxTree& tree = condition.module->tree();
    const Op op = tree[condition.node].op;
    switch (condition.kind()) {
      case Kind::not_expression: {
        const auto inner = of(condition.child(Field::argument), depth + 1);
        return inner ? std::optional(!*inner) : inner;
      }
      case Kind::boolean: {
        const bool decides = op == Op::logical_or;
        const auto left = of(condition.child(Field::left), depth + 1);
        const auto right = of(condition.child(Field::right), depth + 1);
        if (left == decides || right == decides) return decides;
        return left && right ? std::optional(!decides) : std::nullopt;
      }
      case Kind::comparison: {
        if (tree.child_count(condition.node) != 2) return std::nullopt;
        const auto left = given(condition.with(tree.child_at(condition.node, 0)));
        const Value right = program_.evaluate(condition.with(tree.child_at(condition.node, 1)));
        return left && left->known() && right.known() ? compared(op, *left, right) : std::nullopt;
      }
      default: {
        const auto value = given(condition);
        return value ? truth(*value) : std::nullopt;
      }
    }
  }

 private:
  // The value that the call, or the default, gives for a parameter of the helper.
  std::optional<Value> given(Ref name) const {
    const auto& parameters = helper_.function->parameters;
    const auto at = std::find_if(parameters.begin(), parameters.end(),
                                 [&](const auto& each) { return each.name == name.text(); });
    if (name.kind() != Kind::identifier || at == parameters.end() || call_.has_splat() ||
        is_changed(at->name))
      return std::nullopt;
    const std::size_t first = helper_.function->owner_class != kNoNode ? 1 : 0;
    const auto index = static_cast<std::size_t>(at - parameters.begin());
    if (index < first) return std::nullopt;
    Ref value = call_.argument(index - first, at->name);
    if (!value) value = {helper_.module, at->default_value};
    return value && is_literal(value) ? std::optional(program_.evaluate(value)) : std::nullopt;
  }

  bool is_changed(std::string_view parameter) const {
    const Module& module = *helper_.module;
    const auto& defs = module.defs_of(parameter, false);
    return std::any_of(defs.begin(), defs.end(), [&](std::uint32_t index) {
      const Def& def = module.defs()[index];
      return def.kind != DefKind::parameter &&
             module.tree().contains(helper_.function->node, def.target);
    });
  }

  const Program& program_;
  FunctionRef helper_;
  CallRef call_;
};

// The calls of the helper that the name is given in its function: net = build(name).
std::vector<CallRef> calls_given(const Program& program, Ref expression, FunctionRef helper) {
  std::vector<CallRef> out;
  const auto add = [&](Ref value) {
    const CallRef call = program.as_call(value);
    if (call && program.callee(call) == helper) out.push_back(call);
  };
  add(expression);
  if (!stands_for_object(expression)) return out;
  const Module& module = *expression.module;
  const bool is_attribute = expression.kind() == Kind::attribute;
  const Ref name = is_attribute ? expression.child(Field::attribute) : expression;
  for (const std::uint32_t index : module.defs_of(name.text(), is_attribute)) {
    const Def& def = module.defs()[index];
    if (def.kind == DefKind::assign && program.same_variable({&module, def.target}, expression))
      add({&module, def.value});
  }
  return out;
}

}  // namespace

bool is_left_bare(const Program& program, Ref expression, const Wrap& wrap) {
  const FunctionRef helper = program.enclosing_function(wrap.call.ref());
  if (!helper) return false;
  const auto guards = program.guards(wrap.call.ref());
  if (guards.empty()) return false;
  const auto calls = calls_given(program, expression, helper);
  return !calls.empty() && std::all_of(calls.begin(), calls.end(), [&](const CallRef& call) {
    const Outcome outcome(program, helper, call);
    return std::any_of(guards.begin(), guards.end(), [&](const Guard& guard) {
      return outcome.of(guard.condition) == !guard.holds;
    });
  });
}

}  // namespace bench::diagnose
