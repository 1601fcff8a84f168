#include "bench/plan/scenario_file.hpp"

#include "bench/core/error.hpp"
#include "bench/core/file_text.hpp"
#include "bench/core/nearest.hpp"
#include "bench/plan/scenario_catalog.hpp"
#include "bench/plan/setting_table.hpp"
#include "bench/plan/setting_values.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>

namespace bench {
namespace {

[[noreturn]] void fail(const std::string& source, const toml::source_region& where,
                       const std::string& what) {
  throw UsageError(source + ":" + std::to_string(where.begin.line) + ":" +
                   std::to_string(where.begin.column) + ": " + what);
}

std::string full_key(const Setting& setting) {
  return (setting.section.empty() ? "" : std::string(setting.section) + ".") +
         std::string(setting.key);
}

std::vector<std::string> known_keys(std::string_view section) {
  std::vector<std::string> keys;
  for (const Setting& row : setting_table()) {
    if (row.section == section) keys.emplace_back(row.key);
  }
  return keys;
}

std::vector<std::string> known_sections() {
  std::vector<std::string> sections;
  for (const Setting& row : setting_table()) {
    if (row.section.empty() || (!sections.empty() && sections.back() == row.section)) continue;
    sections.emplace_back(row.section);
  }
  return sections;
}

// Whole numbers also serve where a number or (gpu_counts) a word is expected.
std::optional<Value> value_from_node(ValueType type, const toml::node& node) {
  switch (type) {
    case ValueType::word:
      if (const auto* text = node.as_string()) return Value(text->get());
      if (const auto* number = node.as_integer()) return Value(std::to_string(number->get()));
      return std::nullopt;
    case ValueType::integer:
      if (const auto* number = node.as_integer()) return Value(number->get());
      return std::nullopt;
    case ValueType::number:
      if (const auto* number = node.as_floating_point()) return Value(number->get());
      if (const auto* number = node.as_integer()) return Value(static_cast<double>(number->get()));
      return std::nullopt;
    case ValueType::boolean:
      if (const auto* flag = node.as_boolean()) return Value(flag->get());
      return std::nullopt;
  }
  return std::nullopt;
}

class Reader {
 public:
  Reader(std::string source, Settings& settings)
      : source_(std::move(source)), settings_(settings) {}

  void read(const toml::table& document) {
    for (const auto& [key, node] : document) {
      if (const auto* section = node.as_table()) {
        read_section(key, *section);
      } else {
        read_setting("", key, node);
      }
    }
    refuse_both(document, "batches", "batches_per_gpu");
  }

 private:
  void read_section(const toml::key& key, const toml::table& section) {
    const auto known = known_sections();
    if (std::find(known.begin(), known.end(), std::string(key.str())) == known.end()) {
      fail(source_, key.source(), unknown_name_message("section", key.str(), known));
    }
    for (const auto& [inner, node] : section) read_setting(key.str(), inner, node);
  }

  void read_setting(std::string_view section, const toml::key& key, const toml::node& node) {
    const Setting* setting = find_setting(section, key.str());
    if (setting == nullptr) {
      const auto what = section.empty() ? "key" : "key in [" + std::string(section) + "]";
      fail(source_, key.source(), unknown_name_message(what, key.str(), known_keys(section)));
    }
    try {
      setting->apply(settings_, values_of(*setting, node));
    } catch (const BadValue& bad) {
      fail(source_, node.source(), full_key(*setting) + ": " + bad.what());
    }
  }

  std::vector<Value> values_of(const Setting& setting, const toml::node& node) const {
    std::vector<Value> values;
    const auto take = [&](const toml::node& element) {
      auto value = value_from_node(setting.type, element);
      if (!value) {
        fail(source_, element.source(), full_key(setting) + ": expected " + expectation(setting));
      }
      values.push_back(std::move(*value));
    };
    const auto* array = node.as_array();
    if (array == nullptr) {
      take(node);
    } else if (!setting.list || array->empty()) {
      fail(source_, node.source(), full_key(setting) + ": expected " + expectation(setting));
    } else {
      for (const auto& element : *array) take(element);
    }
    return values;
  }

  static std::string expectation(const Setting& setting) {
    const std::string type = value_type_name(setting.type);
    return setting.list ? type + " or a list of them" : type;
  }

  void refuse_both(const toml::table& document, const char* one, const char* other) const {
    const auto sweep = document["sweep"];
    if (sweep[one] && sweep[other]) {
      fail(source_, sweep[other].node()->source(),
           std::string("sweep.") + other + ": expected either this or sweep." + one);
    }
  }

  std::string source_;
  Settings& settings_;
};

bool is_path(const std::string& text) {
  return text.ends_with(".toml") || text.find('/') != std::string::npos;
}

std::string scenario_text(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error) || std::filesystem::is_directory(path, error)) {
    throw UsageError("--scenario: no such file '" + path + "'");
  }
  auto text = file_text(path);
  if (!text) throw UsageError("--scenario: cannot read '" + path + "'");
  return std::move(*text);
}

}  // namespace

Settings parse_scenario(std::string_view text, const std::string& source, const std::string& name) {
  Settings settings;
  settings.scenario = name;
  try {
    const toml::table document = toml::parse(text, source);
    Reader(source, settings).read(document);
  } catch (const toml::parse_error& error) {
    fail(source, error.source(), "malformed TOML: " + std::string(error.description()));
  }
  return settings;
}

void require_complete(const Settings& settings) {
  const auto missing = [&](const char* what) {
    throw UsageError("scenario " + settings.scenario + ": expected " + std::string(what));
  };
  if (settings.models.empty()) missing("sweep.models (or --model)");
  if (settings.strategies.empty()) missing("sweep.strategies (or --strategy)");
  if (settings.batches.empty() && settings.batches_per_gpu.empty() && !settings.searches()) {
    missing("sweep.batches, sweep.batches_per_gpu (or --batch) or search.highest_per_gpu");
  }
  if (settings.searches() && settings.search_lowest_per_gpu > settings.search_highest_per_gpu) {
    missing("search.lowest_per_gpu not above search.highest_per_gpu");
  }
}

Settings load_scenario(const std::string& name_or_path) {
  if (is_path(name_or_path)) {
    const std::string stem = std::filesystem::path(name_or_path).stem().string();
    return parse_scenario(scenario_text(name_or_path), name_or_path, case_name_part(stem));
  }
  std::vector<std::string> known;
  for (const EmbeddedText& file : embedded_scenarios()) {
    const std::string name(file.name.substr(0, file.name.rfind('.')));
    if (name == name_or_path) {
      return parse_scenario(file.text, "scenarios/" + std::string(file.name), name);
    }
    known.push_back(name);
  }
  throw UsageError("--scenario: " + unknown_name_message("scenario", name_or_path, known));
}

}  // namespace bench
