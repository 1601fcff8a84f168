#include "diagnose/driver/project_configs.hpp"

#include "diagnose/config/python_config.hpp"
#include "diagnose/driver/source_files.hpp"
#include "diagnose/launch/launch_documents.hpp"
#include "diagnose/launch/overrides.hpp"
#include "diagnose/model/module.hpp"
#include "diagnose/model/role_names.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <filesystem>
#include <system_error>

namespace bench::diagnose {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxConfigBytes = 256U << 10;  // larger ones are data
constexpr std::size_t kMaxBytes = 16U << 20;         // of all files of a project
constexpr std::size_t kMaxConfigFiles = 1024;
constexpr std::size_t kMaxAccelerateFiles = 64;
constexpr std::size_t kMaxPages = 512;
constexpr std::size_t kMaxPageBytes = 8U << 20;   // of all pages of a project
constexpr std::size_t kMaxEntryBytes = 1U << 20;  // of what one file says
constexpr std::size_t kMaxDirectories = 1024;
constexpr int kMaxDepth = 8;

// configs/, conf/, model_cfg/, options/, experiments/: folders of configurations by their name.
bool is_config_folder(const std::string& name) {
  const std::string plain = lowered(name);
  constexpr auto kParts =
      std::to_array<std::string_view>({"cfg", "conf", "experiment", "exps", "hparams", "options",
                                       "params", "recipe", "settings", "yaml", "yml"});
  return plain == "exp" || std::any_of(kParts.begin(), kParts.end(), [&](std::string_view part) {
           return plain.find(part) != std::string::npos;
         });
}

// Files that set up a tool or a service, not the training.
bool is_of_a_tool(const std::string& name) {
  constexpr auto kBeginnings = std::to_array<std::string_view>(
      {".", "pyproject", "mkdocs", "docker-compose", "compose.", "environment", "package",
       "tsconfig", "meta.y", "setup.", "accelerate", "deepspeed", "ds_config"});
  return std::any_of(kBeginnings.begin(), kBeginnings.end(),
                     [&](std::string_view beginning) { return name.starts_with(beginning); });
}

// accelerate_config.yaml; others are known by what they say.
bool is_of_accelerate(const DirectoryEntry& entry) {
  return !entry.is_link && !entry.is_directory && entry.name.starts_with("accelerate") &&
         type_of(entry.name) == FileType::yaml;
}

bool holds_keys(FileType type) {
  return type == FileType::yaml || type == FileType::toml || type == FileType::json;
}

std::vector<std::string> folders_between(const std::string& above, const std::string& file) {
  std::vector<std::string> out;
  std::size_t begin = above.size();
  for (std::size_t slash = file.find('/', begin); slash != std::string::npos;
       slash = file.find('/', begin)) {
    out.push_back(file.substr(begin, slash - begin));
    begin = slash + 1;
  }
  return out;
}

bool in_config_folder(const std::string& root, const std::string& file) {
  const auto folders = folders_between(root, file);
  return std::any_of(folders.begin(), folders.end(), is_config_folder);
}

// Below the script's own directory any folder of configurations is meant for it; above it only what
// stands in a directory that leads to the script, or in such a folder of it.
bool is_for_script(const std::string& file, const std::string& root, const std::string& script) {
  const std::string own = directory_of(script);
  if (file.starts_with(own) && (directory_of(file) == own || in_config_folder(own, file)))
    return true;
  for (std::string above = own; above.size() > root.size();) {
    above = directory_of(above.substr(0, above.size() - 1));
    if (above.size() < root.size() || !file.starts_with(above)) continue;
    const auto folders = folders_between(above, file);
    if (folders.empty() || is_config_folder(folders.front())) return true;
  }
  return false;
}

// TRAINING.md, docs/finetune.md: pages beside the README that show commands too.
bool is_page(const std::string& path) {
  return lowered(path).ends_with(".md") && launch_document(path) == LaunchDocument::none;
}

// A text that may hold the key, in the spelling of an option too.
bool may_hold(std::string_view text, const std::string& key) {
  if (text.find(key) != std::string_view::npos) return true;
  std::string dashed = key;
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  return dashed != key && text.find(dashed) != std::string_view::npos;
}

// `key: 1`, "key": 1, key = 1 in a text.
bool gives(std::string_view text, const std::string& key) {
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  for (std::size_t at = text.find(key); at != text.npos; at = text.find(key, at + 1)) {
    if (at > 0 && is_word(text[at - 1])) continue;
    const std::size_t sign = text.find_first_not_of(" \t\"']", at + key.size());
    if (sign != text.npos && (text[sign] == ':' || text[sign] == '=')) return true;
  }
  return false;
}

// Words of which readers of YAML differ: no, off, None.
bool is_disputed(const Value& value) {
  constexpr auto kWords = std::to_array<std::string_view>(
      {"yes", "no", "on", "off", "y", "n", "true", "false", "null", "none", "~"});
  return value.is_string() &&
         std::find(kWords.begin(), kWords.end(), lowered(value.string)) != kWords.end();
}

bool is_same(const Value& a, const Value& b) {
  return a.type == b.type && a.integer == b.integer && a.number == b.number && a.string == b.string;
}

// `<<: *defaults` brings the keys of another table to where it stands.
std::string without_merges(std::string path) {
  for (std::size_t at = path.find("<<."); at != std::string::npos; at = path.find("<<."))
    path.erase(at, 3);
  return path;
}

}  // namespace

std::string ProjectConfigs::root_among(const std::vector<std::string>& directories,
                                       const std::string& top) {
  if (directories.empty()) return prefix_of(top);
  const std::lock_guard lock(mutex_);
  const auto known = roots_.find(directories.front());
  if (known != roots_.end()) return known->second;
  const auto marked =
      std::find_if(directories.begin(), directories.end(),
                   [&](const std::string& directory) { return is_project_root(list_(directory)); });
  const std::string root = marked == directories.end() ? prefix_of(top) : *marked;
  return roots_.emplace(directories.front(), root).first->second;
}

// False where the file cannot be read, or is too large.
bool ProjectConfigs::take(const std::string& path, std::vector<File>& out,
                          std::vector<File>& of_accelerate, std::size_t& bytes) const {
  std::error_code error;
  // Texts of tests are not on disk.
  const auto size = fs::file_size(path, error);
  if (!error && size > kMaxConfigBytes) return false;
  auto text = cache_.read(path);
  if (!text || text->size() > kMaxConfigBytes) return false;
  const auto holds = [&](std::string_view word) {
    return !is_page(path) && text->find(word) != std::string::npos;
  };
  if (holds("zero_optimization")) return true;  // of DeepSpeed
  const bool is_accelerate = holds("compute_environment:");
  if (is_accelerate && of_accelerate.size() > kMaxAccelerateFiles) return true;
  bytes += text->size();
  File file;
  file.path = path;
  file.text = std::move(*text);
  file.is_command = is_page(path) ||
                    (launch_document(path) != LaunchDocument::none && !holds_keys(type_of(path)));
  (is_accelerate ? of_accelerate : out).push_back(std::move(file));
  return true;
}

void ProjectConfigs::read_pages(Project& project) const {
  project.has_read_pages = true;
  std::size_t bytes = 0;
  for (const std::string& path : project.page_paths) {
    if (bytes > kMaxPageBytes) break;
    take(path, project.pages, project.of_accelerate, bytes);
  }
  project.has_all_pages = project.has_all_pages && bytes <= kMaxPageBytes;
}

void ProjectConfigs::walk(const std::string& root, Project& out) const {
  std::deque<std::pair<std::string, int>> pending{{root, 0}};
  std::size_t directories = 0;
  std::size_t bytes = 0;
  bool is_all_read = true;
  while (!pending.empty() && out.is_complete) {
    const auto [directory, depth] = pending.front();
    pending.pop_front();
    const bool of_configs = in_config_folder(root, directory);
    for (const DirectoryEntry& entry : list_(directory)) {
      if (out.files.size() > kMaxConfigFiles || bytes > kMaxBytes) break;
      const std::string path = directory + entry.name;
      const bool of_accelerate = is_of_accelerate(entry);
      if (is_of_a_tool(entry.name) && !of_accelerate) continue;
      // What a link or a large file would say is not known.
      if (entry.is_link && !entry.is_directory && holds_keys(type_of(path))) is_all_read = false;
      if (entry.is_link) continue;
      if (of_accelerate) {
        take(path, out.of_accelerate, out.of_accelerate, bytes);
        continue;
      }
      if (entry.is_directory) {
        if (depth < kMaxDepth && !is_skipped_directory(entry.name))
          pending.emplace_back(path + "/", depth + 1);
        continue;
      }
      const FileType type = type_of(path);
      // JSON elsewhere is data.
      const bool wanted = type == FileType::yaml || type == FileType::toml ||
                          (type == FileType::json && (of_configs || directory == root)) ||
                          (type == FileType::python && of_configs) ||
                          launch_document(path) != LaunchDocument::none;
      if (wanted && !take(path, out.files, out.of_accelerate, bytes) && holds_keys(type))
        is_all_read = false;
      if (!wanted && is_page(path)) {
        out.has_all_pages = out.page_paths.size() < kMaxPages;
        if (out.has_all_pages) out.page_paths.push_back(path);
      }
    }
    out.is_complete = is_all_read && ++directories <= kMaxDirectories &&
                      out.files.size() <= kMaxConfigFiles && bytes <= kMaxBytes;
  }
  if (!out.is_complete) out.files.clear();
}

ProjectConfigs::Project& ProjectConfigs::project_at(const std::string& root) {
  auto& known = projects_[root];
  if (!known) {
    known = std::make_unique<Project>();
    walk(root, *known);
  }
  return *known;
}

const std::vector<ConfigEntry>& ProjectConfigs::entries_of(File& file) {
  if (file.is_read) return file.entries;
  file.is_read = true;
  const FileType type = type_of(file.path);
  if (type == FileType::python)
    file.entries = read_python_config(Module(file.path, "", file.text));
  else if (type == FileType::toml)
    file.entries = read_toml(file.path, file.text);
  else
    file.entries = read_yaml(file.path, file.text);
  std::size_t bytes = 0;
  for (ConfigEntry& entry : file.entries) {
    entry.path = without_merges(std::move(entry.path));
    if (!entry.value.items.empty() || is_disputed(entry.value)) entry.value = {};
    bytes += entry.path.size() + sizeof entry;
  }
  // Aliases of aliases: what little it says is not worth the memory.
  if (bytes > kMaxEntryBytes) file.entries.clear();
  file.entries.shrink_to_fit();
  return file.entries;
}

// Those of launch lines by the script that the line starts; the rest of the text is about any.
void ProjectConfigs::add_overrides(File& file, const std::string& key,
                                   std::vector<ShippedValue>& out) {
  auto everywhere = overrides_in(file.text, key);
  if (everywhere.empty()) return;
  if (!file.is_read)
    file.launches = is_page(file.path)
                        ? read_launch_document(directory_of(file.path) + "README.md", file.text)
                        : read_launch_document(file.path, file.text);
  file.is_read = true;
  for (const LaunchLine& launch : file.launches) {
    std::string words;
    for (const LaunchWord& word : launch.script_arguments) words += word.text + " ";
    const std::string script = launch.script.literal ? launch.script_name() : "";
    for (Value& value : overrides_in(words, key)) {
      if (!everywhere.empty()) {
        const auto same =
            std::find_if(everywhere.begin(), everywhere.end(),
                         [&](const Value& each) { return each.known() && is_same(each, value); });
        everywhere.erase(same == everywhere.end() ? everywhere.begin() : same);
      }
      out.push_back({file.path, key, std::move(value), ShippedValue::Place::command, script});
    }
  }
  for (Value& value : everywhere)
    out.push_back({file.path, key, std::move(value), ShippedValue::Place::command});
}

std::vector<ShippedValue> ProjectConfigs::values_in_pages(const std::string& root,
                                                          const std::string& key) {
  std::vector<ShippedValue> out;
  Project& project = project_at(root);
  if (!project.has_read_pages) read_pages(project);
  if (!project.is_complete || !project.has_all_pages)
    return {{root, key, {}, ShippedValue::Place::command}};
  for (File& page : project.pages)
    if (may_hold(page.text, key)) add_overrides(page, key, out);
  return out;
}

std::vector<ShippedValue> ProjectConfigs::values_of_accelerate(const std::string& root,
                                                               const std::string& key) {
  using Place = ShippedValue::Place;
  std::vector<ShippedValue> out;
  Project& project = project_at(root);
  if (project.of_accelerate.size() > kMaxAccelerateFiles) return {{root, key, {}, Place::command}};
  for (std::vector<File>* files : {&project.of_accelerate, &project.files})
    for (File& file : *files) {
      if (file.is_command || !gives(file.text, "distributed_type")) continue;
      for (const ConfigEntry& entry : entries_of(file))
        if (entry.path == key) out.push_back({file.path, key, entry.value, Place::elsewhere});
    }
  return out;
}

std::vector<ShippedValue> ProjectConfigs::values_of(const std::string& root,
                                                    const std::string& script,
                                                    const std::string& key) {
  using Place = ShippedValue::Place;
  std::vector<ShippedValue> out;
  const std::lock_guard lock(mutex_);
  if (key.starts_with("--")) return values_in_pages(root, key.substr(2));
  if (constexpr std::string_view kTool = "accelerate."; key.starts_with(kTool))
    return values_of_accelerate(root, key.substr(kTool.size()));
  Project& project = project_at(root);
  // Some file that is not looked at may say anything.
  if (!project.is_complete) return {{root, key, {}, Place::command}};
  for (File& file : project.files) {
    if (!may_hold(file.text, key)) continue;
    if (file.is_command) {
      add_overrides(file, key, out);
      continue;
    }
    const Place place = is_for_script(file.path, root, script) ? Place::config : Place::elsewhere;
    const std::size_t before = out.size();
    for (const ConfigEntry& entry : entries_of(file))
      if (entry.key() == key) out.push_back({file.path, entry.path, entry.value, place});
    // Given in a way that was not understood: it may be anything.
    if (out.size() == before && gives(file.text, key))
      out.push_back({file.path, key, {}, Place::command});
  }
  return out;
}

}  // namespace bench::diagnose
