#include "bench/plan/scenario_catalog.hpp"

#include "bench/plan/scenario_file.hpp"

namespace bench {

std::vector<ScenarioEntry> scenario_catalog() {
  std::vector<ScenarioEntry> entries;
  for (const EmbeddedText& file : embedded_scenarios()) {
    const std::string name(file.name.substr(0, file.name.rfind('.')));
    entries.push_back({name, load_scenario(name).description});
  }
  return entries;
}

}  // namespace bench
