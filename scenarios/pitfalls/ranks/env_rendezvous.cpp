#include "scenarios/pitfalls/ranks/env_rendezvous.hpp"

#include "diagnose/model/shown_commands.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Field;
using diagnose::Kind;
using diagnose::Module;
using diagnose::NodeId;

bool is_fake_group(const Program& program, const CallRef& init) {
  return program.string(init.argument(0, "backend")) == "fake";
}

std::string_view variable_read(const Program& program, const CallRef& init) {
  if (init.keyword("store") || is_fake_group(program, init) ||
      program.string(init.argument(0, "backend")) == "mpi")
    return "";
  const auto is_given = [&](Ref value) {
    return value && program.environment_name(value).empty() &&
           program.integer(value).value_or(0) >= 0;
  };
  if (!is_given(init.argument(4, "rank")) || !is_given(init.argument(3, "world_size")))
    return "RANK";
  const Ref method = init.argument(1, "init_method");
  const bool is_env = !method || method.kind() == Kind::none_literal ||
                      program.string(method).value_or("").starts_with("env://");
  return is_env ? "MASTER_ADDR" : "";
}

namespace {

// os.environ.get("RANK", 0): the one use of a name that does without the variable.
bool is_read_with_default(const Module& module, NodeId name) {
  const auto& tree = module.tree();
  const NodeId arguments = tree[name].parent;
  if (tree[arguments].kind != Kind::argument_list) return false;
  const diagnose::Call* call = module.call_at(tree[arguments].parent);
  return call != nullptr && (call->api == Api::getenv || call->name == "get") &&
         tree.child_at(arguments, 0) == name && tree.child_count(arguments) > 1;
}

bool names_variable(const Program& program, std::string_view variable) {
  for (const Module* module : program.modules()) {
    const auto& tree = module->tree();
    for (NodeId node = 0; node < tree.size(); ++node)
      if (tree[node].kind == Kind::string && tree.string_value(node) == variable &&
          !is_read_with_default(*module, node))
        return true;
  }
  return program.mentions(std::string(variable) + "=");  // environ.update(RANK=rank)
}

// A comment tells the user to set it; one about the launcher that does so tells nothing.
bool is_asked_for(const Program& program, std::string_view variable) {
  for (const Module* module : program.modules())
    for (const auto& comment : module->tree().comments()) {
      const auto text = module->tree().source().substr(comment.begin, comment.end - comment.begin);
      if (facts::contains(text, variable) && !says_any(text, {"torchrun", "launch", "srun"}))
        return true;
    }
  return false;
}

bool is_of_program(const Program& program, std::string_view import) {
  const auto& modules = program.modules();
  return std::any_of(modules.begin(), modules.end(),
                     [&](const Module* module) { return module->dotted_name() == import; });
}

// model_distribution, distance, distill: nothing about several processes.
bool speaks_of_distances(std::string_view name) {
  return says_any(name, {"distribution", "distance", "distil"});
}

// A file out of sight that may set variables when it is imported. Configurations hold numbers, and
// from layers import * brings layers.
bool imports_environment(const Program& program) {
  for (const Module* module : program.modules())
    for (const std::string& import : module->imports())
      if (!import.starts_with("torch") && !is_of_program(program, import) &&
          !speaks_of_distances(import) &&
          says_any(import, {"env", "setup", "launch", "dist", "slurm", "idr"}))
        return true;
  return false;
}

bool calls_environment_before(const Program& program, const CallRef& init) {
  for (const Module* module : program.modules())
    for (const diagnose::Call& made : module->calls()) {
      const CallRef call{module, &made};
      if (made.api != Api::none || made.name == "__init__" || program.callee(call) ||
          !says_any(made.name, {"init", "setup", "set_up", "dist", "ddp", "launch", "prepare",
                                "env", "port", "master", "slurm"}))
        continue;
      const Ref called{module, module->tree().child(made.node, Field::function)};
      if (program.qualified(called).starts_with("torch.") ||
          program.runs_before(init.ref(), call.ref()))
        continue;
      return true;
    }
  return false;
}

// os.environ.update(settings), or os.environ[name] = value: any variable may be among them.
bool writes_unnamed(const Program& program) {
  for (const CallRef& call : program.calls_named("update"))
    if (call.receiver() && program.qualified(call.receiver()) == "os.environ" &&
        call.positional(0).kind() != Kind::dictionary)
      return true;
  for (const Module* module : program.modules())
    for (const NodeId node : module->nodes_of(Kind::subscript)) {
      const auto& tree = module->tree();
      if (tree[node].field == Field::left &&
          module->api(tree.child(node, Field::value)) == Api::environ &&
          !tree.string_value(tree.child(node, Field::subscript)))
        return true;
    }
  return false;
}

}  // namespace

bool may_set(const Program& program, std::string_view variable, const CallRef& init) {
  return names_variable(program, variable) || is_asked_for(program, variable) ||
         writes_unnamed(program) || imports_environment(program) ||
         calls_environment_before(program, init);
}

std::vector<diagnose::LaunchLine> launches_in_text(const Program& program) {
  return diagnose::shown_commands(program.root());
}

std::vector<diagnose::LaunchLine> own_launches_in_text(const Program& program) {
  const std::string_view name = diagnose::script_file(program.root());
  std::vector<diagnose::LaunchLine> own;
  std::vector<diagnose::LaunchLine> others;
  for (diagnose::LaunchLine& launch : launches_in_text(program))
    (launch.script_name() == name ? own : others).push_back(std::move(launch));
  const bool is_one = std::all_of(others.begin(), others.end(), [&](const auto& launch) {
    return launch.script_name() == others.front().script_name();
  });
  return own.empty() && is_one ? others : own;
}

}  // namespace bench::pitfalls
