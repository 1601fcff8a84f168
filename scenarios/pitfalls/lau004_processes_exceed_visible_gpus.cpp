#include "diagnose/launch/slurm_job.hpp"
#include "diagnose/model/script_kind.hpp"
#include "diagnose/model/shown_commands.hpp"
#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/ranks/nodes_of_job.hpp"
#include "scenarios/pitfalls/reach/as_launched.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Launcher;
using diagnose::LaunchLine;
using diagnose::LaunchWord;
using diagnose::Value;

namespace {

// mp.spawn(worker, nprocs=gpus * nodes): every node starts the processes of all.
void check_spawn_for_all_nodes(const Program& program, Report& report) {
  if (facts::launches_tell_nodes(program)) return;
  for (const CallRef& spawn : program.calls(Api::spawn)) {
    const Ref count = spawn.argument(2, "nprocs");
    if (!facts::counts_nodes(program, count)) continue;
    report
        .at(count, Confidence::likely,
            "each node starts the processes of all nodes: with two nodes there are twice as many "
            "as GPUs, and ranks that two processes have")
        .help = "Pass the number of processes of one node; the world size counts all.";
  }
}

bool is_torch(const LaunchLine& launch) {
  return launch.launcher == Launcher::torchrun || launch.launcher == Launcher::launch_module;
}

// accelerate launch --gpu_ids 0,1
std::optional<std::int64_t> listed_gpus(const LaunchLine& launch) {
  const auto ids = launch.launcher == Launcher::accelerate ? launch.flag("gpu-ids") : std::nullopt;
  if (!ids || ids->empty() || *ids == "all") return std::nullopt;
  return std::count(ids->begin(), ids->end(), ',') + 1;
}

// GPUs that a line leaves to one node: of the variable, the launcher's list, or the Slurm job.
std::optional<std::int64_t> gpus_of(const LaunchLine& launch) {
  if (const auto visible = launch.visible_devices()) return visible;
  if (launch.environment.contains("CUDA_VISIBLE_DEVICES") || launch.is_elsewhere)
    return std::nullopt;
  if (const auto listed = listed_gpus(launch)) return listed;
  const bool starts_here = is_torch(launch) || launch.launcher == Launcher::accelerate;
  return starts_here && !launch.job.contains("gpus-per-task") ? diagnose::gpus_of_job(launch.job)
                                                              : std::nullopt;
}

const LaunchWord& count_word(const LaunchLine& launch) {
  for (const char* name : {"nproc-per-node", "num-processes"})
    if (const auto flag = launch.flags.find(name); flag != launch.flags.end()) return flag->second;
  return launch.command;
}

// In the script's own text, with the devices in front of the command: whoever copies it copies
// both.
bool is_shown_to_readers(const LaunchLine& launch) {
  const auto devices = launch.environment.find("CUDA_VISIBLE_DEVICES");
  return launch.file.ends_with(diagnose::kShownText) && devices != launch.environment.end() &&
         devices->second.line == launch.command.line;
}

// if [ $several = 1 ]; then cmd="-m torch.distributed.launch --nproc_per_node=4 $cmd"; fi, and
// devices that stand outside: the two may be of different runs.
bool may_be_of_two_runs(const LaunchLine& launch) {
  const auto devices = launch.environment.find("CUDA_VISIBLE_DEVICES");
  return devices != launch.environment.end() &&
         count_word(launch).of_branch != devices->second.of_branch;
}

void check_line(const Program& program, const LaunchLine& launch, Report& report) {
  const auto ranks = launch.processes_per_node();
  auto visible = gpus_of(launch);
  if (!visible && program.gpus()) visible = *program.gpus();
  if (!ranks || !visible || *visible <= 0 || *ranks <= *visible ||
      launch.launcher == Launcher::python || may_be_of_two_runs(launch))
    return;
  Finding& finding =
      report.at_word(launch.file, count_word(launch), Confidence::certain,
                     std::to_string(*ranks) + " processes for " + std::to_string(*visible) +
                         (*visible == 1 ? " visible GPU" : " visible GPUs") +
                         ": CUDA error, invalid device ordinal");
  if (is_shown_to_readers(launch) && !diagnose::is_test(program.root())) {
    finding.is_for_readers = true;
    finding.severity = Severity::warning;
  }
  finding.help = "Make them equal: --nproc-per-node=gpu counts the visible GPUs.";
}

// srun torchrun --nproc-per-node 4 with four tasks on a node: each task starts four.
void check_tasks_of_step(const LaunchLine& launch, Report& report) {
  const auto ranks = launch.processes_per_node().value_or(1);
  const auto tasks = diagnose::tasks_per_node(launch.job).value_or(1);
  if (!launch.is_job_step || !is_torch(launch) || ranks < 2 || tasks < 2 ||
      launch.job.contains("gpus-per-task") || launch.job.contains("gpu-bind"))
    return;
  const auto gpus = gpus_of(launch);
  if (gpus && ranks * tasks <= *gpus) return;
  Finding& finding = report.at_word(
      launch.file, launch.command, gpus ? Confidence::certain : Confidence::likely,
      "srun starts this once for each of " + std::to_string(tasks) + " tasks on a node, with " +
          std::to_string(ranks) + " processes each: more than one process for a GPU");
  if (!gpus) finding.severity = Severity::warning;
  finding.help = "One task for each node: --ntasks-per-node=1.";
}

// mp.spawn(worker, nprocs=gpus) and its kin, where the line comes by: one process starts the ranks.
// What the others run joins a group: a download in several processes is none.
bool starts_ranks_itself(const Program& program, const LaunchLine& launch) {
  const auto starts_ranks = [&](const CallRef& start) {
    return facts::surely_starts_ranks(program, start) &&
           facts::is_reachable(program, start.ref()) &&
           !facts::is_passed_by(program, launch, start.ref());
  };
  const auto spawns = program.calls(Api::spawn);
  const auto starts = facts::starts_of_processes(program);
  return std::any_of(spawns.begin(), spawns.end(), starts_ranks) ||
         std::any_of(starts.begin(), starts.end(), starts_ranks);
}

// The line may mean this file: from the folder that it stands in, or from one above, where scripts
// in run/ are started.
bool means_file(const LaunchLine& launch, const std::string& file) {
  namespace fs = std::filesystem;
  const std::string script = launch.script_path();
  fs::path base = fs::path(launch.file).parent_path();
  for (bool goes_on = true; goes_on; base = base.parent_path()) {
    if ((base / launch.folder / script).lexically_normal() == fs::path(file).lexically_normal())
      return true;
    goes_on = base.has_relative_path();
  }
  return false;
}

// The same of a shell script that is read for itself: what its line starts is read as a program.
bool spawns_by_its_text(const Program& program, const LaunchLine& launch) {
  if (!program.root().tree().source().empty()) return false;
  constexpr std::size_t kMostBytes = 256U << 10;  // no file that people write is longer
  const auto files = program.where_in_project([&](std::string_view text) {
    std::optional<std::uint32_t> line;
    if (text.size() > kMostBytes || !facts::contains(text, "init_process_group") ||
        !facts::contains(text, "spawn("))
      return line;
    const diagnose::Module module("", "", std::string(text));
    diagnose::ProgramInput input;
    input.modules.push_back(&module);
    if (starts_ranks_itself(Program(std::move(input)), launch)) line = 1;
    return line;
  });
  return std::any_of(files.begin(), files.end(),
                     [&](const auto& file) { return means_file(launch, file.first); });
}

// torchrun train.py in a job of several GPUs: one process is the default, and not asked for.
void check_forgotten_count(const Program& program, const LaunchLine& launch, Report& report) {
  if (!is_torch(launch) || launch.flags.contains("nproc-per-node") || launch.has_unknown_flags ||
      launch.is_job_step || launch.nodes() != 1 || launch.flags.contains("nnodes") ||
      launch.environment.contains("PET_NPROC_PER_NODE") || program.uses(Api::data_parallel) ||
      starts_ranks_itself(program, launch))
    return;
  const auto gpus = gpus_of(launch);
  if (!gpus || *gpus < 2 || spawns_by_its_text(program, launch)) return;
  Finding& finding = report.at_word(launch.file, launch.command, Confidence::likely,
                                    "without --nproc-per-node one process is started, and " +
                                        std::to_string(*gpus) + " GPUs are visible");
  finding.severity = Severity::warning;
  finding.help = "Add --nproc-per-node=" + std::to_string(*gpus) + ".";
}

// torchrun train.py --nproc_per_node=4: what the launcher was given before as well is an option of
// the script that has the same name.
void check_flags_behind_script(const LaunchLine& launch, Report& report) {
  if (!is_torch(launch) || launch.has_unknown_flags) return;
  for (const LaunchWord& word : launch.script_arguments) {
    const std::string name =
        diagnose::spelt_with_dashes(std::string_view(word.text).substr(0, word.text.find('=')));
    if (!word.text.starts_with("--") || (name != "nproc-per-node" && name != "nnodes") ||
        launch.flags.contains(name))
      continue;
    report
        .at_word(launch.file, word, Confidence::certain,
                 "a flag of the launcher after the script's name goes to the script: one "
                 "process runs")
        .help = "Put it before " + launch.script.text + ".";
  }
}

}  // namespace

void check_processes_exceed_visible_gpus(const Program& program, Report& report) {
  for (const LaunchLine& launch : program.launches()) {
    check_line(program, launch, report);
    check_tasks_of_step(launch, report);
    check_forgotten_count(program, launch, report);
    check_flags_behind_script(launch, report);
  }
  for (const CallRef& spawn : program.calls(Api::spawn)) {
    const Ref count = spawn.argument(2, "nprocs");
    const Value value = program.evaluate(count);
    const auto visible = facts::visible_gpus(program);
    if (!value.is_integer() || !visible || *visible <= 0 || value.integer <= *visible) continue;
    Finding& finding =
        report.at(count, value.is_default ? Confidence::likely : Confidence::certain,
                  std::to_string(value.integer) + " processes for " + std::to_string(*visible) +
                      (*visible == 1 ? " visible GPU" : " visible GPUs") +
                      ": CUDA error, invalid device ordinal");
    finding.help = "Use torch.cuda.device_count().";
    if (value.is_default) finding.severity = Severity::warning;  // a run may say otherwise
  }
  check_spawn_for_all_nodes(program, report);
}

}  // namespace bench::pitfalls
