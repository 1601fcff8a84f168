#include "diagnose/command/kept_inputs.hpp"

#include "bench/core/error.hpp"
#include "diagnose/driver/source_search.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>

namespace bench::diagnose {
namespace {

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  return std::filesystem::equivalent(a, b, error);
}

bool is_script(const std::string& file) {
  const FileType type = type_of(file);
  return type == FileType::python || type == FileType::notebook || type == FileType::shell;
}

// JSON, SARIF and GitLab's report lie in the folder that is checked where an earlier run has put
// them there; a config of the project is an object of other keys.
bool may_be_result(const SourceFile& file) {
  if (file.type != FileType::json || file.is_named) return false;
  const auto json = nlohmann::json::parse(read_source(file.path).value_or(""), nullptr,
                                          /*allow_exceptions=*/false);
  return !json.is_object() || json.contains("findings") || json.contains("runs");
}

}  // namespace

void check_inputs_are_kept(const Flags& flags) {
  std::error_code error;
  if (!flags.output_file || !std::filesystem::is_regular_file(*flags.output_file, error)) return;
  const std::string& output = *flags.output_file;
  const auto refuse = [&](const std::string& why) {
    throw UsageError("--output-file " + output + ": " + why);
  };
  if (flags.baseline && is_same_file(*flags.baseline, output))
    refuse("is the baseline, whose findings would be lost; write it without --baseline");
  if (flags.settings_file && is_same_file(*flags.settings_file, output))
    refuse("holds the settings, which would be lost");
  if (flags.options.given_text) {
    const bool is_fixed_text = (flags.fix || flags.add_ignores) && !flags.diff;
    if (!is_fixed_text && is_script(output)) refuse("is a script, which would be lost");
    return;
  }
  const auto files = find_sources(flags.options).files;
  if (std::any_of(files.begin(), files.end(), [&](const SourceFile& file) {
        return is_same_file(file.path, output) && !may_be_result(file);
      }))
    refuse("is one of the files that are checked, which would be lost");
  if (is_script(output)) refuse("is a script, which would be lost");
}

}  // namespace bench::diagnose
