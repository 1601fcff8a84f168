#include "bench/plan/scenario_catalog.hpp"

#include <toml++/toml.h>

namespace bench {

std::vector<ScenarioEntry> scenario_catalog() {
  std::vector<ScenarioEntry> entries;
  for (const EmbeddedText& file : embedded_scenarios()) {
    const toml::table table = toml::parse(file.text, file.name);
    entries.push_back({std::string(file.name.substr(0, file.name.rfind('.'))),
                       table["description"].value_or(std::string())});
  }
  return entries;
}

}  // namespace bench
