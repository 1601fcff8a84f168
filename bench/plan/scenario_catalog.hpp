// The scenarios compiled into the program: scenarios/*.toml, available wherever it is installed.
#pragma once

#include "bench/core/embedded_text.hpp"

#include <span>
#include <string>
#include <vector>

namespace bench {

std::span<const EmbeddedText> embedded_scenarios();  // generated from scenarios/*.toml

struct ScenarioEntry {
  std::string name;
  std::string description;
};

std::vector<ScenarioEntry> scenario_catalog();

}  // namespace bench
