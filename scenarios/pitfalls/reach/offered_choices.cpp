#include "scenarios/pitfalls/reach/offered_choices.hpp"

#include "scenarios/pitfalls/program/set_options.hpp"
#include "scenarios/pitfalls/reach/decided.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace bench::pitfalls::facts {

using diagnose::DefKind;
using diagnose::Field;
using diagnose::Kind;
using diagnose::NodeId;
using diagnose::Source;
using diagnose::Value;

namespace {

// The values that the declaration allows; empty where it does not write all of them out.
std::vector<Value> allowed_by(const Program& program, const CallRef& declaration) {
  const Ref list = declaration.keyword("choices");
  if (!list || declaration.has_splat()) return {};
  const Value choices = program.evaluate(list);
  if (choices.type != Value::Type::list || choices.items.empty()) return {};
  std::vector<Value> out = choices.items;
  const Ref given = declaration.keyword("default");
  Value unless_given = given ? program.evaluate(given) : Value{};
  if (!given) unless_given.type = Value::Type::none;
  out.push_back(unless_given);
  const bool known =
      std::all_of(out.begin(), out.end(), [](const Value& value) { return value.known(); });
  return known ? out : std::vector<Value>{};
}

// What the option can be, by every declaration that it may come from.
std::vector<Value> values_of(const Program& program, Ref option) {
  std::vector<Value> out;
  for (const Source& source : program.sources(option)) {
    if (source.how != Source::How::argument) return {};
    const auto allowed = allowed_by(program, program.as_call(source.ref));
    if (allowed.empty()) return {};
    out.insert(out.end(), allowed.begin(), allowed.end());
  }
  return out;
}

bool is_of_option(Ref at) {
  return at.kind() == Kind::attribute &&
         at.module->tree()[at.module->tree()[at.node].parent].kind == Kind::comparison;
}

}  // namespace

bool is_for_no_choice(const Program& program, const diagnose::Guard& guard) {
  const auto& tree = guard.condition.module->tree();
  for (NodeId id = guard.condition.node; id < tree[guard.condition.node].last; ++id) {
    const Ref option = guard.condition.with(id);
    if (!is_of_option(option)) continue;
    const auto values = values_of(program, option);
    if (!values.empty() && std::all_of(values.begin(), values.end(), [&](const Value& value) {
          return decided(program, guard.condition, option.text(), value) == !guard.holds;
        }))
      return !may_be_set_otherwise(program, option.child(Field::attribute).text());
  }
  return false;
}

}  // namespace bench::pitfalls::facts
