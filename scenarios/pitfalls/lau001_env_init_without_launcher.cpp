#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/ranks/env_rendezvous.hpp"
#include "scenarios/pitfalls/reach/as_launched.hpp"

#include <algorithm>

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
  if (program.uses(Api::spawn) || program.imports("submitit") || program.framework_distributes() ||
      program.imports("deepspeed"))  // which also asks MPI
    return true;
  for (const std::string_view word :
       {"'RANK' in os.environ", "\"RANK\" in os.environ", "WORLD_SIZE' in", "WORLD_SIZE\" in",
        "MASTER_ADDR", "LOCAL_RANK' in", "LOCAL_RANK\" in", "os.environ.get(\"RANK\"",
        "os.environ.get('RANK'", "tcp://", "file://", "Process(", "is_torchelastic"})
    if (program.mentions(word)) return true;
  return false;
}

// The variable that is read where the group is joined and that the line does not set.
std::string_view missing_variable(const Program& program, const CallRef& init,
                                  const LaunchLine& launch) {
  const std::string_view variable = variable_read(program, init);
  return launch.environment.contains(std::string(variable)) ? "" : variable;
}

bool may_set_rank(const LaunchLine& launch) {
  return launch.environment.contains("RANK") || launch.sources_variables;
}

// Rank and world size can be left out under a launcher alone, and this one is none for torch: srun
// tells the rank as SLURM_PROCID.
bool is_plain_srun(const LaunchLine& launch) {
  const auto exported = launch.flags.find("export");
  return launch.launcher == Launcher::srun && !may_set_rank(launch) &&
         !launch.flags.contains("container-image") &&  // its hooks may set the variables
         (exported == launch.flags.end() || !facts::contains(exported->second.text, "RANK"));
}

// Known lines or, without them, those that the text of a script for Slurm shows.
std::vector<LaunchLine> launches_shown(const Program& program) {
  const auto& known = program.launches();
  return known.empty() && program.mentions("SLURM_PROCID") ? launches_in_text(program) : known;
}

// All lines start the ranks by srun, or by python within a job of it.
bool is_started_by_srun(const std::vector<LaunchLine>& launches) {
  return std::any_of(launches.begin(), launches.end(), is_plain_srun) &&
         std::all_of(launches.begin(), launches.end(), [](const LaunchLine& launch) {
           return is_plain_srun(launch) ||
                  (launch.launcher == Launcher::python && !may_set_rank(launch));
         });
}

// What fails under a condition or in a try is expected there, and the script goes on alone.
bool is_tried(const Program& program, const CallRef& init) {
  return program.under(init.ref(), [](Ref condition, bool) {
    return !facts::contains(condition.text(), "__name__");
  }) || init.module->tree().ancestor(init.call->node, Kind::try_statement) != kNoNode;
}

// True when it is reported.
bool check_started_by_srun(const Program& program, Report& report) {
  if (program.uses(Api::spawn) || program.imports("submitit") || program.imports("mpi4py") ||
      program.framework_distributes())
    return false;
  const auto launches = launches_shown(program);
  if (!is_started_by_srun(launches)) return false;
  for (const CallRef& init : program.calls(Api::init_process_group)) {
    const Ref method = init.argument(1, "init_method");
    const bool is_env = !method || program.string(method).value_or("").starts_with("env://");
    if (!is_env || variable_read(program, init) != "RANK" || is_tried(program, init) ||
        !facts::is_reachable(program, init.ref()) || may_set(program, "RANK", init))
      continue;
    Finding& finding = report.at(init.ref(), Confidence::likely,
                                 "srun sets SLURM_PROCID and no RANK: ValueError, environment "
                                 "variable RANK expected, but not set");
    // A README's job for a script that knows nothing of Slurm may be one of several ways.
    if (!program.mentions("SLURM_PROCID") &&
        std::any_of(launches.begin(), launches.end(),
                    [](const LaunchLine& launch) { return launch.is_example; }))
      tell_as_note(finding);
    finding.help =
        "Give rank and world_size from SLURM_PROCID and SLURM_NTASKS, and set MASTER_ADDR and "
        "MASTER_PORT; or start torchrun by srun.";
    return true;
  }
  return false;
}

}  // namespace

void check_env_init_without_launcher(const Program& program, Report& report) {
  if (check_started_by_srun(program, report)) return;
  for (const LaunchLine& launch : program.launches()) {
    if (launch.launcher != Launcher::python || may_set_rank(launch) || works_alone(program))
      continue;
    for (const CallRef& init : program.calls(Api::init_process_group)) {
      if (is_tried(program, init) || !facts::is_reachable(program, init.ref()) ||
          facts::is_passed_by(program, launch, init.ref()))
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
        if ((name != "LOCAL_RANK" && name != "RANK") || launch.environment.contains(name)) continue;
        if (!program.guards({module, node}).empty() ||
            module->tree().ancestor(node, Kind::try_statement) != kNoNode ||
            !facts::is_reachable(program, {module, node}) ||
            facts::is_passed_by(program, launch, {module, node}))
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
