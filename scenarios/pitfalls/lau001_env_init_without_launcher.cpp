#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::Launcher;
using diagnose::LaunchLine;
using diagnose::Module;
using diagnose::NodeId;

namespace {

// The script copes with being started without a launcher.
bool works_alone(const Program& program) {
  if (program.uses(Api::spawn) || program.imports("submitit") || program.framework_distributes())
    return true;
  for (const std::string_view word :
       {"'RANK' in os.environ", "\"RANK\" in os.environ", "WORLD_SIZE' in", "WORLD_SIZE\" in",
        "MASTER_ADDR", "LOCAL_RANK' in", "LOCAL_RANK\" in", "os.environ.get(\"RANK\"",
        "os.environ.get('RANK'", "tcp://", "file://", "Process(", "is_torchelastic"})
    if (program.mentions(word)) return true;
  return false;
}

// The variable that is missing where the group is joined; nothing where none is read. Who gives
// rank and world size needs the first node's address alone, and none with an address of his own.
std::string_view missing_variable(const Program& program, const CallRef& init,
                                  const LaunchLine& launch) {
  const Ref rank = init.argument(4, "rank");
  const Ref world_size = init.argument(3, "world_size");
  const auto is_given = [&](Ref value) {
    return value && program.environment_name(value).empty() &&
           program.integer(value).value_or(0) >= 0;
  };
  if (!is_given(rank) || !is_given(world_size)) return "RANK";
  const Ref method = init.argument(1, "init_method");
  const bool is_env = !method || method.kind() == Kind::none_literal ||
                      program.string(method).value_or("").starts_with("env://");
  return is_env && !launch.environment.contains("MASTER_ADDR") ? "MASTER_ADDR" : "";
}

}  // namespace

void check_env_init_without_launcher(const Program& program, Report& report) {
  for (const LaunchLine& launch : program.launches()) {
    if (launch.launcher != Launcher::python || launch.environment.contains("RANK") ||
        works_alone(program))
      continue;
    for (const CallRef& init : program.calls(Api::init_process_group)) {
      const bool guarded = program.under(init.ref(), [](Ref condition, bool) {
        return !facts::contains(condition.text(), "__name__");
      });
      // What fails in a try is caught, and the script goes on alone.
      const bool caught =
          init.module->tree().ancestor(init.call->node, Kind::try_statement) != kNoNode;
      if (init.keyword("store") || guarded || caught || !facts::is_reachable(program, init.ref()))
        continue;
      const std::string variable(missing_variable(program, init, launch));
      if (variable.empty()) continue;
      Finding& finding = report.at(init.ref(), Confidence::certain,
                                   "started with plain python there is no " + variable +
                                       " in the environment: ValueError, environment variable " +
                                       variable + " expected, but not set");
      // A README often shows the run of one process, with options that this one does not follow.
      if (launch.is_example) tell_as_note(finding);
      finding.help = "Launch with torchrun --nproc-per-node=N " + launch.script.text + ".";
      return;
    }
    for (const Module* module : program.modules())
      for (const NodeId node : module->nodes_of(Kind::subscript)) {
        const std::string name = program.environment_name({module, node});
        if (name != "LOCAL_RANK" && name != "RANK") continue;
        if (!program.guards({module, node}).empty() ||
            module->tree().ancestor(node, Kind::try_statement) != kNoNode ||
            !facts::is_reachable(program, {module, node}))
          continue;
        Finding& finding = report.at(
            {module, node}, Confidence::certain,
            "started with plain python there is no " + name + " in the environment: KeyError");
        if (launch.is_example) tell_as_note(finding);
        finding.help = "Launch with torchrun --nproc-per-node=N " + launch.script.text + ".";
        return;
      }
  }
}

}  // namespace bench::pitfalls
