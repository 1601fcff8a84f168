#include "scenarios/pitfalls/ranks/spawned_code.hpp"

#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <set>
#include <string_view>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Def;
using diagnose::Field;
using diagnose::FunctionRef;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::Module;
using diagnose::NodeId;

namespace {

// The children of mp.spawn import the script anew; those of start_processes() may be forks, which
// have all that the parent has.
bool starts_fresh_children(const CallRef& spawn) {
  return spawn.call->name == "spawn" && !spawn.keyword("start_method");
}

// def work(...) of the script itself, for mp.spawn(work, ...), and the functions there that it
// leads to.
std::vector<FunctionRef> spawned_functions(const Program& program) {
  std::vector<FunctionRef> out;
  const auto add = [&](FunctionRef each) {
    if (each.module == &program.root() && std::find(out.begin(), out.end(), each) == out.end())
      out.push_back(each);
  };
  for (const CallRef& spawn : program.calls(Api::spawn)) {
    if (!starts_fresh_children(spawn) || !facts::is_reachable(program, spawn.ref())) continue;
    for (const diagnose::Source& source : program.sources(spawn.argument(0, "fn"))) {
      if (source.ref.kind() != Kind::function) continue;
      const FunctionRef worker{source.ref.module, source.ref.module->function_at(source.ref.node)};
      add(worker);
      for (const FunctionRef& each : program.reached({worker.module, worker.function->body}))
        add(each);
    }
  }
  return out;
}

// Given a value on the script's own level below the main guard, and nowhere else there; no function
// makes it global either.
bool is_given_under_guard_alone(const Module& script, std::string_view name) {
  bool given = false;
  for (const auto index : script.defs_of(name, false)) {
    const Def& def = script.defs()[index];
    if (def.scope != 0) continue;
    if (!script.under_main_guard(def.target)) return false;
    given = true;
  }
  return given && script.import_path(name).empty() &&
         !script.mentions("global " + std::string(name));
}

// A target of an assignment or a loop, as rest in `first, *rest = items`, or of a case.
bool is_stored(const Module& script, NodeId name) {
  const auto& tree = script.tree();
  for (NodeId at = name; at != kNoNode && tree[at].kind != Kind::block; at = tree[at].parent) {
    const NodeId around = tree[at].parent;
    if (around == kNoNode) return false;
    const Kind kind = tree[around].kind;
    if ((kind == Kind::assignment || kind == Kind::for_statement) &&
        tree.child(around, Field::left) == at)
      return true;
    if (kind == Kind::other && tree.text(around).starts_with("case ")) return true;
  }
  return false;
}

// A parameter, or a name that the function around the read, or one around that, gives a value.
bool is_local(const Module& script, NodeId read) {
  const auto& tree = script.tree();
  const auto& defs = script.defs_of(script.text(read), false);
  if (std::any_of(defs.begin(), defs.end(), [&](const auto index) {
        const NodeId scope = script.defs()[index].scope;
        return scope != 0 && tree.contains(scope, read);
      }))
    return true;
  const NodeId function = script.function_of(read);
  for (NodeId at = function; at < tree[function].last; ++at)
    if (tree[at].kind == Kind::identifier && tree.text(at) == tree.text(read) &&
        is_stored(script, at))
      return true;
  return false;
}

// Python has it under that name, whatever the script does.
bool is_builtin(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "abs",    "all",  "any",  "bin",    "bool",  "bytes",  "chr",  "dict",  "dir",  "eval",
      "exec",   "exit", "file", "filter", "float", "format", "hash", "help",  "hex",  "id",
      "input",  "int",  "iter", "len",    "list",  "map",    "max",  "min",   "next", "object",
      "open",   "ord",  "pow",  "print",  "quit",  "range",  "repr", "round", "set",  "slice",
      "sorted", "str",  "sum",  "super",  "tuple", "type",   "vars", "zip"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// if debug: print(args), of a parameter: the children may well leave it out. Their own rank is a
// parameter, too, and one of them has any.
bool depends_on_parameter(const Program& program, Ref read) {
  const auto guards = program.guards(read);
  return std::any_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
    const auto& tree = guard.condition.module->tree();
    for (NodeId at = guard.condition.node; at < tree[guard.condition.node].last; ++at)
      if (const Ref name = guard.condition.with(at);
          facts::is_parameter(program, name) && !program.is_spawn_rank(name))
        return true;
    return false;
  });
}

// The script gives names to its children in another way: globals().update(...), a guard that lets
// them in, or one with an else.
bool gives_names_otherwise(const Module& script) {
  const std::string_view source = script.tree().source();
  if (facts::contains(source, "globals()") || facts::contains(source, "__mp_main__")) return true;
  for (const NodeId test : script.nodes_of(Kind::if_statement))
    if (facts::contains(script.text(script.tree().child(test, Field::condition)), "__name__") &&
        script.tree().child(test, Field::alternative) != kNoNode)
      return true;
  return false;
}

bool is_read(const Module& script, NodeId node) {
  const auto& entry = script[node];
  if (entry.kind != Kind::identifier || entry.field == Field::attribute ||
      entry.field == Field::name || entry.field == Field::left)
    return false;
  const auto& tree = script.tree();
  return tree.ancestor(node, Kind::try_statement) == kNoNode &&
         tree.ancestor(node, Kind::comprehension) == kNoNode &&
         tree.ancestor(node, Kind::lambda) == kNoNode;
}

// The function that starts the ranks holds the call, below the start, whatever is asked for: a
// guard around both is one of the way that starts them.
bool stands_behind(const Program& program, const CallRef& spawn, const CallRef& leave) {
  const auto guards = program.guards(leave.ref());
  const auto around = program.guards(spawn.ref());
  return leave.module == spawn.module && leave.call->node > spawn.call->node &&
         program.enclosing_function(leave.ref()) == program.enclosing_function(spawn.ref()) &&
         !facts::exclusive(spawn.ref(), leave.ref()) &&
         leave.module->tree().ancestor(leave.call->node, Kind::try_statement) == kNoNode &&
         std::all_of(guards.begin(), guards.end(), [&](const diagnose::Guard& guard) {
           return std::find(around.begin(), around.end(), guard) != around.end();
         });
}

}  // namespace

bool runs_in_spawned(const Program& program, Ref node) {
  const auto here = program.enclosing_function(node);
  const auto& functions = program.functions();
  return here && std::any_of(functions.begin(), functions.end(), [&](const auto& worker) {
           if (!program.is_spawned(worker)) return false;
           const auto reached = program.reached({worker.module, worker.function->body});
           return here == worker ||
                  std::find(reached.begin(), reached.end(), here) != reached.end();
         });
}

std::vector<Ref> names_of_parent_alone(const Program& program) {
  std::vector<Ref> out;
  const Module& script = program.root();
  if (!program.uses(Api::spawn) || !script.has_main_guard() || script.has_star_imports() ||
      program.is_notebook() || gives_names_otherwise(script))
    return out;
  std::set<std::string_view> seen;
  for (const FunctionRef& worker : spawned_functions(program)) {
    const NodeId body = worker.function->body;
    for (NodeId node = body; node < script[body].last; ++node) {
      if (!is_read(script, node) || is_builtin(script.text(node)) || is_local(script, node) ||
          depends_on_parameter(program, {&script, node}))
        continue;
      const std::string_view name = script.text(node);
      if (is_given_under_guard_alone(script, name) && seen.insert(name).second)
        out.push_back({&script, node});
    }
  }
  return out;
}

std::vector<CallRef> leaves_of_parent(const Program& program) {
  std::vector<CallRef> out;
  const auto inits = program.calls(Api::init_process_group);
  if (inits.empty() || std::any_of(inits.begin(), inits.end(), [&](const CallRef& init) {
        return !runs_in_spawned(program, init.ref());
      }))
    return out;
  for (const CallRef& leave : program.calls(Api::destroy_process_group))
    for (const CallRef& spawn : program.calls(Api::spawn))
      if (starts_fresh_children(spawn) && facts::is_reachable(program, leave.ref()) &&
          stands_behind(program, spawn, leave)) {
        out.push_back(leave);
        break;
      }
  return out;
}

}  // namespace bench::pitfalls
