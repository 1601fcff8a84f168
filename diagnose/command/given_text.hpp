// `-` among the paths: the text of a script from standard input, in place of the file that
// --stdin-filename names.
#pragma once

#include "diagnose/driver/options.hpp"

#include <optional>
#include <string>

namespace bench::diagnose {

// Where findings in a text stand that has no place.
inline constexpr const char* kStandardInput = "<stdin>";

// Reads standard input where the only path is `-`. Throws UsageError for other paths beside it, for
// a name without it, and for more than 10 MiB.
void take_standard_input(const std::optional<std::string>& name, DiagnoseOptions& options);

}  // namespace bench::diagnose
