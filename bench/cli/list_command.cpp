// bench list TOPIC: the names that flags and scenario files accept, with a line about each.
#include "bench/cli/commands.hpp"
#include "bench/cli/flag_parser.hpp"
#include "bench/cli/pitfalls_command.hpp"
#include "bench/core/error.hpp"
#include "bench/core/model_catalog.hpp"
#include "bench/core/nearest.hpp"
#include "bench/core/units.hpp"
#include "bench/plan/scenario_catalog.hpp"
#include "diagnose/output/index.hpp"
#include "scenarios/pitfalls/page.hpp"
#include "scenarios/pitfalls/registry.hpp"
#include "simulator/machine.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

namespace bench::cli {
namespace {

using Row = nlohmann::ordered_json;  // an object; its "name" and "description" make the text form

std::vector<Row> scenario_rows() {
  std::vector<Row> rows;
  for (const auto& entry : scenario_catalog()) {
    rows.push_back({{"name", entry.name}, {"description", entry.description}});
  }
  rows.push_back({{"name", kPitfallsScenario}, {"description", kPitfallsDescription}});
  return rows;
}

std::vector<Row> model_rows() {
  std::vector<Row> rows;
  for (const auto& model : model_catalog()) {
    const double parameters = static_cast<double>(model.parameter_count);
    rows.push_back({{"name", model.name},
                    {"description", std::string(model.description) + " (" +
                                        format_count(parameters) + " parameters)"},
                    {"parameters", model.parameter_count},
                    {"input_shape", model.input_shape}});
  }
  return rows;
}

std::vector<Row> machine_rows() {
  std::vector<Row> rows;
  for (const auto& entry : simulator::machine_catalog()) {
    char memory[32];
    std::snprintf(memory, sizeof memory, "%g GiB", entry.memory_gib);
    const std::string gpus = entry.gpus == 1 ? "" : std::to_string(entry.gpus) + " x " + entry.gpu;
    rows.push_back({{"name", entry.name},
                    {"description", entry.title + " (" + (gpus.empty() ? "" : gpus + ", ") +
                                        memory + (gpus.empty() ? ")" : " each)")},
                    {"kind", entry.kind},
                    {"gpus", entry.gpus},
                    {"gpu", entry.gpu},
                    {"memory_gib", entry.memory_gib},
                    {"source", entry.source}});
  }
  return rows;
}

// The first sentence of what a rule's page says it detects.
std::string first_sentence(std::string text) {
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  const std::size_t end = text.find(". ");
  return end == std::string::npos ? text : text.substr(0, end + 1);
}

std::vector<Row> rule_rows() {
  std::vector<Row> rows;
  for (const auto& rule : pitfalls::all_rules()) {
    const std::string detects = first_sentence(pitfalls::section(rule, "What it detects"));
    rows.push_back({{"name", rule.name},
                    {"description", std::string(rule.id) + " " +
                                        std::string(diagnose::name_of(rule.severity)) + ", " +
                                        std::string(diagnose::name_of(rule.category)) + ", from " +
                                        diagnose::evidence_of(rule) + ": " + detects},
                    {"id", rule.id},
                    {"category", diagnose::name_of(rule.category)},
                    {"severity", diagnose::name_of(rule.severity)},
                    {"evidence", diagnose::evidence_of(rule)},
                    {"static", rule.check != nullptr}});
  }
  return rows;
}

struct Topic {
  const char* name;
  std::vector<Row> (*rows)();
  const char* footnote;  // what else is accepted; text form only
};

constexpr Topic kTopics[] = {
    {"scenarios", scenario_rows, "or a TOML file of your own: docs/scenarios.md"},
    {"models", model_rows, "or a TorchScript file: --model FILE.pt --input 3x224x224"},
    {"machines", machine_rows, "or <count>x<gpu>, <nodes>x<node>, or a TOML file of your own"},
    {"rules", rule_rows, "bench explain RULE shows a rule's page, by name or id"},
};

const Topic& find_topic(const std::string& name) {
  std::vector<std::string> known;
  for (const Topic& topic : kTopics) {
    if (name == topic.name) return topic;
    known.emplace_back(topic.name);
  }
  throw UsageError("bench list: " + unknown_name_message("list", name, known));
}

void print_text(const Topic& topic) {
  const std::vector<Row> rows = topic.rows();
  std::size_t width = 0;
  for (const Row& row : rows) {
    width = std::max(width, row["name"].get_ref<const std::string&>().size());
  }
  for (const Row& row : rows) {
    std::printf("%-*s  %s\n", static_cast<int>(width), row["name"].get<std::string>().c_str(),
                row["description"].get<std::string>().c_str());
  }
  std::printf("(%s)\n", topic.footnote);
}

constexpr Flag kFlags[] = {
    {"--format", "text|json", "how to print", "flags", "json"},
};

}  // namespace

int list_command(const Arguments& arguments) {
  const Typed typed = parse_flags(arguments, kFlags, "bench list");
  if (typed.words.size() != 1) {
    throw UsageError("bench list: expected one of scenarios, models, machines, rules");
  }
  const Topic& topic = find_topic(typed.words[0]);
  const std::string format = choice(typed, "--format", {"text", "json"});
  if (format == "json") {
    std::printf("%s\n", nlohmann::ordered_json(topic.rows()).dump(2).c_str());
  } else {
    print_text(topic);
  }
  return kExitClean;
}

}  // namespace bench::cli
