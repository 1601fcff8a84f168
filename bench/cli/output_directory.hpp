// The directory a run writes to. It is made and tried before any work, so that hours of training do
// not end in "permission denied".
#pragma once

#include <filesystem>
#include <string>

namespace bench::cli {

// `given` is --out; empty = results/runs/<UTC time>-<scenario>. Creates it. Throws MachineError
// when it cannot be written, UsageError when a file of that name is in the way.
std::filesystem::path prepare_output(const std::string& given, const std::string& scenario);

// The directory of --resume must hold a run. Throws UsageError.
std::filesystem::path resume_output(const std::string& given);

}  // namespace bench::cli
