#include "scenarios/pitfalls/program/set_options.hpp"

#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::pitfalls::facts {

using diagnose::Field;
using diagnose::Kind;
using diagnose::NodeId;

namespace {

bool holds_options(Ref object) { return says_any(object.text(), {"arg", "opt", "conf", "cfg"}); }

// setattr(args, key, value), parser.set_defaults(data="c"), Namespace(**config).
bool may_set(const CallRef& call, std::string_view option) {
  const std::string_view name = call.call->name;
  if (name == "Namespace") return true;
  if (name == "set_defaults") return call.has_splat() || call.keyword(option);
  return name == "setattr" && holds_options(call.positional(0));
}

// vars(args).update(config), vars(args)["data"] = "c", known = vars(args): what stands around says
// whether the options are written through their dictionary. Functions of the program may.
bool is_written_around(const Program& program, Ref dictionary) {
  const auto& tree = dictionary.module->tree();
  const NodeId parent = tree[dictionary.node].parent;
  const Ref around = dictionary.with(parent);
  switch (around.kind()) {
    case Kind::assignment:
    case Kind::named_expression:
    case Kind::augmented_assignment:
    case Kind::return_statement:
      return true;
    case Kind::attribute:
      return says_any(around.child(Field::attribute).text(),
                      {"update", "pop", "default", "setitem"});
    case Kind::subscript: {
      const NodeId statement = tree[parent].parent;
      return tree[statement].kind == Kind::assignment &&
             tree.child(statement, Field::left) == parent;
    }
    case Kind::argument_list: {
      const CallRef call = program.as_call(dictionary.with(tree[parent].parent));
      return call && (program.callee(call) || program.class_of_call(call));
    }
    default:
      return false;
  }
}

bool are_written_through_dictionary(const Program& program) {
  for (const CallRef& call : program.calls_named("vars"))
    if (holds_options(call.positional(0)) && is_written_around(program, call.ref())) return true;
  if (!program.mentions("__dict__")) return false;
  for (const diagnose::Module* module : program.modules())
    for (NodeId node = 0; node < module->tree().size(); ++node)
      if (const Ref dictionary{module, node};
          dictionary.kind() == Kind::attribute &&
          dictionary.child(Field::attribute).text() == "__dict__" &&
          holds_options(dictionary.child(Field::object)) && is_written_around(program, dictionary))
        return true;
  return false;
}

}  // namespace

bool may_be_set_in_bulk(const Program& program, std::string_view option) {
  for (const std::string_view name : {"setattr", "set_defaults", "Namespace"}) {
    const auto calls = program.calls_named(name);
    if (std::any_of(calls.begin(), calls.end(),
                    [&](const CallRef& call) { return may_set(call, option); }))
      return true;
  }
  return are_written_through_dictionary(program);
}

bool may_be_set_otherwise(const Program& program, std::string_view option) {
  const auto& modules = program.modules();
  return may_be_set_in_bulk(program, option) ||
         std::any_of(modules.begin(), modules.end(), [&](const diagnose::Module* module) {
           return !module->defs_of(option, true).empty();
         });
}

}  // namespace bench::pitfalls::facts
