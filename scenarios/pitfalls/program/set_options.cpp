#include "scenarios/pitfalls/program/set_options.hpp"

#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::pitfalls::facts {

using diagnose::Field;
using diagnose::Kind;
using diagnose::NodeId;

namespace {

// args, hparams, and any plain name for whose dictionary the program asks.
bool holds_options(Ref object) {
  return says_any(object.text(), {"arg", "opt", "conf", "cfg", "param", "flag", "setting"}) ||
         (object.kind() == Kind::identifier && object.text() != "self" && object.text() != "cls");
}

// setattr(args, key, value), parser.set_defaults(data="c"), Namespace(**config).
bool may_set(const CallRef& call, std::string_view option) {
  const std::string_view name = call.call->name;
  if (name == "Namespace") return true;
  if (name == "set_defaults") return call.has_splat() || call.keyword(option);
  return name == "setattr" && holds_options(call.positional(0));
}

// print(vars(args)), json.dumps(vars(args)), wandb.init(config=vars(args)), Run(**vars(args)).
bool only_reads(std::string_view function) {
  static constexpr std::string_view kReaders[] = {"print",      "pprint",
                                                  "pformat",    "dumps",
                                                  "dump",       "safe_dump",
                                                  "info",       "debug",
                                                  "warning",    "log",
                                                  "str",        "repr",
                                                  "len",        "sorted",
                                                  "write",      "init",
                                                  "config",     "add_hparams",
                                                  "add_text",   "log_hyperparams",
                                                  "log_params", "save_hyperparameters",
                                                  "format"};
  return std::find(std::begin(kReaders), std::end(kReaders), function) != std::end(kReaders);
}

// Model(**vars(args)) is given copies of the values; Namespace(**vars(args)) holds them anew.
bool is_only_read_by_call(Ref dictionary) {
  const auto& tree = dictionary.module->tree();
  if (tree.ancestor(dictionary.node, Kind::dictionary) != diagnose::kNoNode) return false;
  const Ref call = dictionary.with(tree.ancestor(dictionary.node, Kind::call));
  const Ref function = call.child(Field::function);
  const std::string_view name = function.kind() == Kind::attribute
                                    ? function.child(Field::attribute).text()
                                    : function.text();
  if (tree[tree[dictionary.node].parent].kind != Kind::dictionary_splat) return only_reads(name);
  return !diagnose::makes_carrier(name) &&
         !says_any(name, {"dict", "namespace", "config", "bunch", "args", "merge", "update"});
}

// What stands around the dictionary of the options only reads it. Everything else may write into
// it, or make other options of it: vars(args).update(config), known = vars(args),
// Settings(**{**vars(args), **config}).
bool is_only_read(Ref dictionary) {
  const auto& tree = dictionary.module->tree();
  const NodeId parent = tree[dictionary.node].parent;
  const Ref around = dictionary.with(parent);
  switch (around.kind()) {
    case Kind::attribute: {
      const std::string_view name = around.child(Field::attribute).text();
      return name == "items" || name == "keys" || name == "values" || name == "get";
    }
    case Kind::subscript: {
      const NodeId statement = tree[parent].parent;
      return tree[statement].kind != Kind::assignment ||
             tree.child(statement, Field::left) != parent;
    }
    case Kind::argument_list:
    case Kind::keyword_argument:
    case Kind::dictionary_splat:
      return is_only_read_by_call(dictionary);
    case Kind::for_statement:
    case Kind::for_in_clause:
    case Kind::comparison:
    case Kind::string:
    case Kind::print_statement:
      return true;
    case Kind::binary:  // "%s" % vars(args), and not vars(args) | settings
      return tree[parent].op == diagnose::Op::modulo;
    default:
      return false;
  }
}

bool are_written_through_dictionary(const Program& program) {
  for (const CallRef& call : program.calls_named("vars"))
    if (holds_options(call.positional(0)) && !is_only_read(call.ref())) return true;
  if (program.mentions("__setattr__")) return true;
  if (!program.mentions("__dict__")) return false;
  for (const diagnose::Module* module : program.modules()) {
    if (!module->tree().holds("__dict__")) continue;
    for (NodeId node = 0; node < module->tree().size(); ++node)
      if (const Ref dictionary{module, node};
          dictionary.kind() == Kind::attribute &&
          dictionary.child(Field::attribute).text() == "__dict__" &&
          holds_options(dictionary.child(Field::object)) && !is_only_read(dictionary))
        return true;
  }
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
