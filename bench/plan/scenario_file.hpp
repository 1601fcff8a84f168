// Scenario files: TOML whose keys are the rows of setting_table.hpp. Whatever is wrong in one is
// reported as file:line:column with what was expected.
#pragma once

#include "bench/plan/settings.hpp"

#include <string>
#include <string_view>

namespace bench {

// `source` is the file's name in messages; `name` is the scenario's. Throws UsageError.
Settings parse_scenario(std::string_view text, const std::string& source, const std::string& name);

// NAME of the catalogue, or the path of a TOML file (anything that ends in .toml or holds a '/').
// Throws UsageError; unknown names list the nearest ones.
Settings load_scenario(const std::string& name_or_path);

// Throws UsageError when file and flags together leave an axis of the sweep empty.
void require_complete(const Settings& settings);

}  // namespace bench
