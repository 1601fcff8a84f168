// A project's settings: the table [tool.bench.diagnose] of pyproject.toml, or [diagnose] of
// bench.toml, in the current directory. Flags add to what a file says and win where both speak.
#pragma once

#include "diagnose/driver/diagnose.hpp"

#include <optional>
#include <string>

namespace bench::diagnose {

// Reads `file`, or what the current directory has when it is empty. Throws UsageError with file and
// line for keys and values that do not exist.
void apply_settings(const std::optional<std::string>& file, DiagnoseOptions& options);

}  // namespace bench::diagnose
