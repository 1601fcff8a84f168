// What `accelerate launch --config_file FILE` finds in a file of the project: how many processes
// and machines it starts, and whether DeepSpeed trains.
#pragma once

#include "diagnose/driver/module_cache.hpp"
#include "diagnose/launch/launch_line.hpp"

#include <string>

namespace bench::diagnose {

// Adds num_processes and num_machines of the file, and use_deepspeed, as if they were flags of the
// line, which go before the file's where it has them. The file is looked for in the line's folder
// and those above it, never outside of `root` (with a slash at its end, or empty); a line that
// names none, or one that is not there, stays as it is.
void read_accelerate_config(LaunchLine& launch, const std::string& root, const ModuleCache& cache);

}  // namespace bench::diagnose
