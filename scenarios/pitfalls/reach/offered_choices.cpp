#include "scenarios/pitfalls/reach/offered_choices.hpp"

#include "scenarios/pitfalls/program/words.hpp"
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

// setattr(args, key, value), vars(args).update(config), parser.set_defaults(data="c"),
// Namespace(**config).
bool may_set(const CallRef& call, std::string_view option) {
  const std::string_view name = call.call->name;
  if (name == "Namespace") return true;
  if (name == "set_defaults") return call.has_splat() || call.keyword(option);
  if (name == "setattr") return says_any(call.positional(0).text(), {"arg", "opt", "conf", "cfg"});
  return name == "update" && call.receiver() &&
         holds_any(call.receiver().text(), {"vars(", "__dict__"});
}

// The parser is not alone in saying what the option is; args.data = "c" is another way.
bool may_be_set_otherwise(const Program& program, std::string_view option) {
  for (const std::string_view name : {"setattr", "set_defaults", "Namespace", "update"}) {
    const auto calls = program.calls_named(name);
    if (std::any_of(calls.begin(), calls.end(),
                    [&](const CallRef& call) { return may_set(call, option); }))
      return true;
  }
  const auto& modules = program.modules();
  return std::any_of(modules.begin(), modules.end(), [&](const diagnose::Module* module) {
    return !module->defs_of(option, true).empty();
  });
}

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
