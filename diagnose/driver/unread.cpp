#include "diagnose/driver/unread.hpp"

#include "diagnose/config/config_entry.hpp"
#include "diagnose/config/toml_mistake.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <string_view>

namespace bench::diagnose {
namespace {

std::string why_no_notebook(const std::string& text) {
  const auto notebook = nlohmann::json::parse(text, nullptr, false);
  if (notebook.is_discarded()) return "is no notebook: not JSON";
  if (!notebook.is_object()) return "is no notebook: not a JSON object";
  if (notebook.contains("worksheets"))
    return "is a notebook of format 3 or older: jupyter nbconvert --to notebook converts it";
  const auto cells = notebook.find("cells");
  return cells != notebook.end() && cells->is_array() ? "" : "is no notebook: has no list of cells";
}

}  // namespace

std::string why_unread(FileType type, const std::string& path, const std::string& text) {
  switch (type) {
    case FileType::notebook:
      return why_no_notebook(text);
    case FileType::yaml:
    case FileType::json: {
      const std::string mistake = yaml_mistake(text);
      return mistake.empty() ? "" : "does not parse: " + mistake;
    }
    case FileType::toml: {
      const std::string mistake = toml_mistake(path, text);
      return mistake.empty() ? "" : "does not parse: line " + mistake.substr(path.size() + 1);
    }
    default:
      return {};
  }
}

bool may_configure_training(const std::string& text) {
  static constexpr auto kWords =
      std::to_array<std::string_view>({"distributed", "trainer", "Trainer", "devices", "gpus",
                                       "strategy", "num_processes", "accelerator"});
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return text.find(word) != std::string::npos; });
}

}  // namespace bench::diagnose
