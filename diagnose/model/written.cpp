// What a name stands for where it has one value only: the literal of a constant, the call that made
// it.
#include "diagnose/model/program.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

bool is_literal(Ref value) {
  switch (value.kind()) {
    case Kind::integer:
    case Kind::floating:
    case Kind::string:
    case Kind::concatenated_string:
    case Kind::true_literal:
    case Kind::false_literal:
    case Kind::none_literal:
    case Kind::list:
    case Kind::tuple:
    case Kind::set:
    case Kind::dictionary:
      return true;
    case Kind::unary: {  // -1
      const Kind of = value.child(Field::argument).kind();
      return of == Kind::integer || of == Kind::floating;
    }
    default:
      return false;
  }
}

// def join(backend="gloo"), and what a call hands to a parameter: join("gloo").
bool is_given_to_parameter(Ref name, Ref value) {
  const SyntaxTree& tree = value.module->tree();
  const Kind around = tree[tree[value.node].parent].kind;
  if (name.kind() == Kind::identifier &&
      (around == Kind::argument_list || around == Kind::keyword_argument))
    return true;
  const NodeId function = value.module->function_of(value.node);
  if (function == 0) return false;
  const NodeId parameters = tree.child(function, Field::parameters);
  return parameters != kNoNode && tree.contains(parameters, value.node);
}

// rounds += 1: no constant, whatever it starts with.
bool is_counted(Ref expression) {
  const Ref member = expression.child(Field::attribute);
  const Module& module = *expression.module;
  const auto& defs = module.defs_of(member ? member.text() : expression.text(), bool{member});
  return std::any_of(defs.begin(), defs.end(), [&](const std::uint32_t index) {
    return module.defs()[index].kind == DefKind::augmented;
  });
}

}  // namespace

Ref Program::written(Ref expression) const {
  if (!stands_for_object(expression)) return expression;
  const auto& found = sources(expression);
  if (found.size() != 1 || found.front().how != Source::How::value) return expression;
  const Ref value = found.front().ref;
  const bool is_constant =
      is_literal(value) && !is_given_to_parameter(expression, value) && !is_counted(expression);
  return is_constant ? value : expression;
}

CallRef Program::made_by(Ref expression) const {
  if (!expression) return {};
  if (const CallRef call = as_call(expression)) return call;
  if (!stands_for_object(expression)) return {};
  const auto& found = sources(expression);
  return found.size() == 1 && found.front().how == Source::How::value ? as_call(found.front().ref)
                                                                      : CallRef{};
}

}  // namespace bench::diagnose
