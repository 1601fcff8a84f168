#include "diagnose/driver/settings.hpp"

#include "bench/core/error.hpp"
#include "bench/core/nearest.hpp"
#include "diagnose/config/config_entry.hpp"
#include "diagnose/config/toml_mistake.hpp"
#include "diagnose/driver/directory.hpp"
#include "diagnose/driver/source_files.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>

namespace bench::diagnose {
namespace {

constexpr std::string_view kTable = "diagnose";
constexpr std::string_view kProjectTable = "tool.bench.diagnose";
constexpr std::int64_t kMostGpus = 1'000'000;  // more is a slip of the pen

const std::vector<std::string> kKeys{"select",   "ignore",     "launch",  "gpus",
                                     "severity", "confidence", "exclude", "per-file-ignores"};
constexpr std::string_view kPerFileIgnores = "per-file-ignores";

[[noreturn]] void refuse(const ConfigEntry& entry, const std::string& what) {
  throw UsageError(entry.file + ":" + std::to_string(entry.line) + ": " + what);
}

const std::vector<Value>& strings_of(const ConfigEntry& entry, const std::string& key,
                                     const std::string& what) {
  if (entry.value.type != Value::Type::list) refuse(entry, key + ": expected a list of " + what);
  for (const Value& item : entry.value.items)
    if (!item.is_string()) refuse(entry, key + ": expected a list of strings");
  return entry.value.items;
}

void add_words(const ConfigEntry& entry, const std::string& key, std::vector<std::string>& words) {
  for (const Value& item : strings_of(entry, key, "rules")) {
    // Named here, where the file and line are known.
    Selection alone;
    alone.select = {item.string};
    try {
      check_selection(alone);
    } catch (const UsageError& error) {
      const std::string_view what = error.what();
      refuse(entry, key + std::string(what.substr(what.find(": "))));
    }
    words.push_back(item.string);
  }
}

// The folder that the globs of a settings file belong to.
std::string folder_of(const std::string& file) {
  std::error_code error;
  return std::filesystem::absolute(file, error).parent_path().string();
}

std::string place_of(const ConfigEntry& entry, std::uint32_t line, std::string_view key) {
  return entry.file + ":" + std::to_string(line) + ": " + std::string(key);
}

// The first line from the one of the key on that shows the item of its list; the key's where it is
// written with escapes.
std::uint32_t line_of_item(std::string_view text, const ConfigEntry& entry,
                           const std::string& item) {
  std::uint32_t line = 1;
  while (!text.empty()) {
    const std::string_view content = text.substr(0, text.find('\n'));
    if (line >= entry.line && (content.find('"' + item + '"') != std::string_view::npos ||
                               content.find('\'' + item + '\'') != std::string_view::npos))
      return line;
    text.remove_prefix(std::min(content.size() + 1, text.size()));
    ++line;
  }
  return entry.line;
}

void add_excluded(const ConfigEntry& entry, std::string_view text, PathPatterns& exclude) {
  for (const Value& item : strings_of(entry, entry.path, "globs"))
    exclude.add(PathPattern(item.string, folder_of(entry.file),
                            place_of(entry, line_of_item(text, entry, item.string), "exclude")));
}

void add_file_ignores(const ConfigEntry& entry, const std::string& glob,
                      std::vector<FileIgnores>& out) {
  FileIgnores ignores{
      PathPattern(glob, folder_of(entry.file), place_of(entry, entry.line, kPerFileIgnores)), {}};
  add_words(entry, std::string(kPerFileIgnores) + ": '" + glob + "'", ignores.rules);
  out.push_back(std::move(ignores));
}

void apply_entry(const ConfigEntry& entry, const std::string& key, std::string_view text,
                 DiagnoseOptions& options) {
  if (key == "select") {
    if (options.selection.select.empty()) add_words(entry, entry.path, options.selection.select);
  } else if (key == "ignore") {
    add_words(entry, entry.path, options.selection.ignore);
  } else if (key == "launch") {
    if (!entry.value.is_string()) refuse(entry, "launch: expected a command as a string");
    if (!options.launch) options.launch = entry.value.string;
  } else if (key == "gpus") {
    if (!entry.value.is_integer() || entry.value.integer < 1 || entry.value.integer > kMostGpus)
      refuse(entry, "gpus: expected a positive number");
    if (!options.gpus) options.gpus = static_cast<int>(entry.value.integer);
  } else if (key == "severity") {
    const auto severity = severity_named(entry.value.string);
    if (!severity) refuse(entry, "severity: expected \"info\", \"warning\" or \"error\"");
    options.selection.at_least = *severity;
  } else if (key == "confidence") {
    const auto confidence = confidence_named(entry.value.string);
    if (!confidence) refuse(entry, "confidence: expected \"check\", \"likely\" or \"certain\"");
    options.selection.least_sure = *confidence;
  } else if (key == "exclude") {
    add_excluded(entry, text, options.exclude);
  } else {
    refuse(entry, unknown_name_message("key", key, kKeys));
  }
}

// What stands behind `table.` in the path of an entry, globs with dots in them included; nothing
// where the entry is not below the table.
std::optional<std::string> key_below(const ConfigEntry& entry, std::string_view table) {
  const std::string_view path = entry.path;
  if (!path.starts_with(table) || !path.substr(table.size()).starts_with('.')) return std::nullopt;
  return std::string(path.substr(table.size() + 1));
}

// True when the entry is one of the table.
bool apply_below(const ConfigEntry& entry, std::string_view table, std::string_view text,
                 DiagnoseOptions& options) {
  if (entry.path == table) {  // the table itself, which may be empty
    if (entry.value.known()) refuse(entry, std::string(table) + ": expected a table");
    return true;
  }
  const auto key = key_below(entry, table);
  if (!key) return false;
  const std::string nested = std::string(kPerFileIgnores) + ".";
  if (key->starts_with(nested))
    add_file_ignores(entry, key->substr(nested.size()), options.per_file_ignores);
  else if (*key == kPerFileIgnores && entry.value.known())  // not the table itself
    refuse(entry, *key + ": expected a table of globs with lists of rules");
  else if (*key != kPerFileIgnores)
    apply_entry(entry, *key, text, options);
  return true;
}

// A directory and those above it in the same repository, as prefixes: "", "../". Outside of a
// repository only that one: what lies above is somebody else's.
std::vector<std::string> folders_from(const std::filesystem::path& start,
                                      const std::string& first) {
  std::error_code error;
  std::vector<std::string> folders;
  std::string up = first;
  for (std::filesystem::path at = start; at.has_relative_path(); at = at.parent_path()) {
    folders.push_back(up);
    if (std::filesystem::exists(at / ".git", error)) return folders;
    up += "../";
  }
  return {first};
}

std::vector<std::string> folders_of_settings(const DiagnoseOptions& options) {
  std::error_code error;
  if (!options.given_text || !options.given_text->has_place)
    return folders_from(std::filesystem::current_path(error), "");
  const std::string& path = options.given_text->path;
  const auto full = std::filesystem::absolute(path, error).lexically_normal();
  return folders_from(full.parent_path(), directory_of(path));
}

// There is nothing of that name; what is there and cannot be read is no reason to go on without it.
bool is_absent(const std::string& file) {
  std::error_code error;
  return !std::filesystem::exists(std::filesystem::symlink_status(file, error));
}

std::vector<std::string> settings_files(const DiagnoseOptions& options) {
  std::vector<std::string> files;
  for (const std::string& folder : folders_of_settings(options))
    for (const char* name : {"bench.toml", "pyproject.toml"})
      files.push_back(shown_path(folder + name));
  return files;
}

}  // namespace

std::optional<std::string> apply_settings(const std::optional<std::string>& file,
                                          DiagnoseOptions& options) {
  const std::vector<std::string> candidates =
      file ? std::vector<std::string>{*file} : settings_files(options);
  for (const std::string& candidate : candidates) {
    const auto text = read_source(candidate);
    if (!text) {
      if (file) throw UsageError("--config " + candidate + ": cannot be read");
      if (!is_absent(candidate))
        throw UsageError(candidate + ": cannot be read; expected a file of settings");
      continue;
    }
    const bool is_project = std::filesystem::path(candidate).filename() == "pyproject.toml";
    const std::string_view table = is_project ? kProjectTable : kTable;
    if (const std::string mistake = toml_mistake(candidate, *text); !mistake.empty())
      throw UsageError(mistake);
    bool found = false;
    for (const ConfigEntry& entry : read_toml(candidate, *text)) {
      // A file that was named may be a copy of a pyproject.toml.
      const bool is_tool = !is_project && (entry.path == "tool" || entry.path.starts_with("tool."));
      if (apply_below(entry, table, *text, options) ||
          (file && apply_below(entry, kProjectTable, *text, options))) {
        found = true;
      } else if (!is_project && !(is_tool && (file || entry.path != "tool.bench"))) {
        refuse(entry, entry.path + ": expected settings below [" + std::string(table) + "]");
      }
    }
    if (found) return candidate;
    if (file)
      throw UsageError("--config " + candidate + ": has no table [" + std::string(table) + "]");
  }
  return std::nullopt;
}

}  // namespace bench::diagnose
