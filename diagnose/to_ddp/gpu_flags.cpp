#include "diagnose/to_ddp/gpu_flags.hpp"

#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

using pitfalls::facts::contains;

bool is_name(Ref expression) {
  return expression.kind() == Kind::identifier || expression.kind() == Kind::attribute;
}

bool is_literal(Ref expression) {
  return expression.kind() == Kind::true_literal || expression.kind() == Kind::false_literal;
}

// All of `a or b`, of which each part is a source.
Ref whole_of(Ref part) {
  const auto& tree = part.module->tree();
  NodeId at = part.node;
  while (tree[tree[at].parent].kind == Kind::boolean ||
         tree[tree[at].parent].kind == Kind::not_expression)
    at = tree[at].parent;
  return part.with(at);
}

// The flag and what it is given stand in one function, or in one class.
bool are_of_one_scope(const Program& program, Ref value, Ref condition) {
  if (value.module != condition.module) return false;
  if (program.enclosing_function(value) == program.enclosing_function(condition))
    return value.node < condition.node;
  const ClassRef home = program.enclosing_class(value);
  return home && home == program.enclosing_class(condition) &&
         condition.text().starts_with("self.");
}

// What the flag is given, alone or until it is known, in the same function or class.
Ref only_value(const Program& program, Ref condition) {
  if (!is_name(condition)) return {};
  Ref value;
  for (const Source& source : program.sources(condition)) {
    if (source.how != Source::How::value || source.ref == condition) return {};
    if (program.is_literal_false(source.ref)) continue;  // until it is known
    const Ref whole = whole_of(source.ref);
    if (value && value != whole) return {};
    value = whole;
  }
  if (!value) return {};
  const auto& tree = value.module->tree();
  const NodeId up = tree[value.node].parent;
  const bool is_given =
      tree[up].kind == Kind::assignment && tree.child(up, Field::right) == value.node;
  return is_given && are_of_one_scope(program, value, condition) ? value : Ref{};
}

}  // namespace

Ref value_of_flag(const Program& program, Ref condition) {
  const Ref value = only_value(program, condition);
  const bool is_test = value && (value.kind() == Kind::comparison || value.kind() == Kind::boolean);
  return is_test ? value : Ref{};
}

bool asks_for_group(const Program& program, Ref condition) {
  constexpr std::string_view kAsked = "is_initialized(";
  if (contains(condition.text(), kAsked)) return true;
  if (condition.kind() == Kind::not_expression) condition = condition.child(Field::argument);
  const Ref value = only_value(program, condition);
  return value && contains(value.text(), kAsked);
}

bool follows_wrapper(const Program& program, Ref condition, const Wrap& wrap) {
  if (condition.kind() == Kind::not_expression) condition = condition.child(Field::argument);
  if (!condition || !is_name(condition)) return false;
  const auto& sources = program.sources(condition);
  const auto& tree = wrap.call.module->tree();
  const NodeId block = tree.ancestor(wrap.call.call->node, Kind::block);
  if (block == kNoNode || !std::all_of(sources.begin(), sources.end(), [](const Source& source) {
        return source.how == Source::How::value && is_literal(source.ref);
      }))
    return false;
  return std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
    return program.is_literal_true(source.ref) && source.ref.module == wrap.call.module &&
           tree.ancestor(source.ref.node, Kind::block) == block;
  });
}

}  // namespace bench::diagnose
