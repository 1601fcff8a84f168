// Shell and Slurm scripts that launch training: their commands with line continuations joined, the
// variables they set, and #SBATCH options.
#pragma once

#include "diagnose/launch/launch_line.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace bench::diagnose {

// The text may be a part of the file that begins at `first_line`.
std::vector<LaunchLine> read_shell_script(const std::string& file, std::string_view text,
                                          std::uint32_t first_line = 1);

}  // namespace bench::diagnose
