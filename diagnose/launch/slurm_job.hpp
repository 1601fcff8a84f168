// What Slurm gives a job: options of #SBATCH and srun, the variables that they become, and the
// tasks and GPUs of a node that follow from them.
#pragma once

#include "diagnose/launch/launch_line.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace bench::diagnose {

using JobOptions = std::map<std::string, LaunchWord>;  // by long name, without dashes

// The rest of a line that begins with #SBATCH.
void note_batch_options(const LaunchWord& line, JobOptions& options);

// srun's own options, in their long spelling.
JobOptions job_options(const std::map<std::string, LaunchWord>& flags);

// $SLURM_NNODES and its kin, where the options say them.
std::optional<LaunchWord> slurm_variable(const JobOptions& options, std::string_view name);

// --gres=gpu:a100:1, --gpus=1; for --gpus of a job that names several nodes nothing.
std::optional<std::int64_t> gpus_of_job(const JobOptions& options);
std::optional<std::int64_t> tasks_per_node(const JobOptions& options);

}  // namespace bench::diagnose
