// A project's settings: the table [tool.bench.diagnose] of pyproject.toml, or [diagnose] of
// bench.toml, in the current directory or the nearest above it up to the repository's root. For a
// text that stands in place of a file it is the directory of that file. Flags add to what a file
// says and win where both speak.
#pragma once

#include "diagnose/driver/diagnose.hpp"

#include <optional>
#include <string>

namespace bench::diagnose {

// Reads `file`, or the nearest file with such a table when it is empty; which file that was,
// nothing where there is none. Throws UsageError with file and line for keys and values that do not
// exist, and for a settings file that is there and cannot be read.
std::optional<std::string> apply_settings(const std::optional<std::string>& file,
                                          DiagnoseOptions& options);

}  // namespace bench::diagnose
