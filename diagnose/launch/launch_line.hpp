// What a launch line says: the environment in front of it, the launcher with its flags, the script
// and the script's own arguments. Nothing is executed; only literal words count.
#pragma once

#include "diagnose/launch/shell_words.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bench::diagnose {

enum class Launcher {
  python,         // python train.py
  torchrun,       // torchrun, python -m torch.distributed.run, launch --use_env
  launch_module,  // python -m torch.distributed.launch
  accelerate,     // accelerate launch
  horovodrun,     // horovodrun, mpirun
  deepspeed,
  srun,
  other,
};

struct LaunchLine {
  std::string file = "<launch>";  // where it stands
  Launcher launcher = Launcher::other;
  std::map<std::string, LaunchWord> environment;
  std::map<std::string, LaunchWord> flags;  // launcher flags, spelt with dashes and no leading ones
  LaunchWord command;                       // the first word of the launcher
  LaunchWord script;
  bool is_example = false;         // stands in a README, where nothing runs it
  bool sources_variables = false;  // `source env.sh` above it: a file that may set variables
  bool is_module = false;          // the script is named as a module: python -m package.train
  std::string folder;  // where a `cd` above the command went, relative; empty without one
  std::vector<LaunchWord> script_arguments;
  bool has_unknown_flags = false;  // $FLAGS before the script, whose value is not written out
  bool in_background = false;      // `&` behind it
  bool is_elsewhere = false;       // ssh host ...: another machine runs it
  std::uint32_t stretch = 0;       // of the file: commands between two `wait`, of one branch
  // Options of the Slurm job or job step that it runs in, in their long spelling.
  std::map<std::string, LaunchWord> job;
  bool is_job_step = false;  // srun starts it, once for each task
  // CUDA_VISIBLE_DEVICES=0 on a line of its own above it, which no child sees.
  std::map<std::string, LaunchWord> not_exported;

  // The script as a path: package/train.py for -m package.train.
  std::string script_path() const;
  std::string script_name() const;  // its last component
  std::optional<std::int64_t> integer_flag(std::string_view name) const;
  std::optional<std::string> flag(std::string_view name) const;  // literal values only
  std::optional<std::string> variable(std::string_view name) const;
  std::optional<std::int64_t> processes_per_node() const;
  std::optional<std::int64_t> nodes() const;
  // Number of devices CUDA_VISIBLE_DEVICES leaves, when it is set to a literal.
  std::optional<std::int64_t> visible_devices() const;
  // The port that its ranks meet at; empty where it is free to choose or not written out.
  std::string port() const;
};

// nproc-per-node for --nproc_per_node.
std::string spelt_with_dashes(std::string_view flag);

std::optional<std::int64_t> to_integer(std::string_view text);

// Understands one command; nothing when it does not start a Python training script.
std::optional<LaunchLine> parse_launch(const std::vector<LaunchWord>& words);
std::optional<LaunchLine> parse_launch(std::string_view line);

// CUDA's reading of CUDA_VISIBLE_DEVICES: it stops at the first entry that is not valid.
struct VisibleDevices {
  std::vector<int> ids;
  std::string problem;  // empty when the list is well formed
};
VisibleDevices parse_visible_devices(std::string_view text);

}  // namespace bench::diagnose
