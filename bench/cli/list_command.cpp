// bench list TOPIC: the names that flags and scenario files accept, with a line about each.
#include "bench/cli/commands.hpp"
#include "bench/core/error.hpp"
#include "bench/core/model_catalog.hpp"
#include "bench/core/nearest.hpp"
#include "bench/core/units.hpp"
#include "bench/plan/scenario_catalog.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

namespace bench::cli {
namespace {

struct Row {
  std::string name;
  std::string description;
};

std::vector<Row> scenario_rows() {
  std::vector<Row> rows;
  for (const auto& entry : scenario_catalog()) rows.push_back({entry.name, entry.description});
  return rows;
}

std::vector<Row> model_rows() {
  std::vector<Row> rows;
  for (const auto& model : model_catalog()) {
    const double parameters = static_cast<double>(model.parameter_count);
    rows.push_back({std::string(model.name), std::string(model.description) + " (" +
                                                 format_count(parameters) + " parameters)"});
  }
  return rows;
}

struct Topic {
  const char* name;
  std::vector<Row> (*rows)();
};

constexpr Topic kTopics[] = {{"scenarios", scenario_rows}, {"models", model_rows}};

const Topic& find_topic(const std::string& name) {
  std::vector<std::string> known;
  for (const Topic& topic : kTopics) {
    if (name == topic.name) return topic;
    known.emplace_back(topic.name);
  }
  throw UsageError(unknown_name_message("list", name, known));
}

void print_text(const std::vector<Row>& rows) {
  std::size_t width = 0;
  for (const Row& row : rows) width = std::max(width, row.name.size());
  for (const Row& row : rows) {
    std::printf("%-*s  %s\n", static_cast<int>(width), row.name.c_str(), row.description.c_str());
  }
}

void print_json(const std::vector<Row>& rows) {
  auto list = nlohmann::ordered_json::array();
  for (const Row& row : rows)
    list.push_back({{"name", row.name}, {"description", row.description}});
  std::printf("%s\n", list.dump(2).c_str());
}

}  // namespace

int list_command(const Arguments& typed) {
  if (typed.empty()) throw UsageError("bench list: expected scenarios or models");
  const Topic& topic = find_topic(typed[0]);
  bool json = false;
  for (std::size_t i = 1; i < typed.size(); ++i) {
    if (typed[i] == "--format" && i + 1 < typed.size() && typed[i + 1] == "json") {
      json = true;
      ++i;
    } else {
      throw UsageError("bench list: unexpected '" + typed[i] + "', expected --format json");
    }
  }
  json ? print_json(topic.rows()) : print_text(topic.rows());
  return kExitClean;
}

}  // namespace bench::cli
