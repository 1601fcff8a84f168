#include "diagnose/driver/surroundings.hpp"

#include "diagnose/driver/assemble.hpp"
#include "diagnose/launch/launch_documents.hpp"

#include <algorithm>
#include <filesystem>

namespace bench::diagnose {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxLevels = 4;  // the script's own directory and three above it
constexpr int kMaxFiles = 64;  // of one directory with its folders of launch scripts

// Folders that hold what starts scripts.
constexpr std::string_view kLaunchFolders[] = {".vscode", "bash", "jobs",  "launch", "run",
                                               "sbatch",  "sh",   "shell", "slurm",  "tools"};

template <std::size_t kCount>
bool is_listed(const std::string_view (&list)[kCount], std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

// scripts, script, train_scripts, launch_scripts, and those of the list.
bool is_launch_folder(std::string_view name) {
  return is_listed(kLaunchFolders, name) || name.ends_with("script") || name.ends_with("scripts");
}

std::string absolute(const std::string& path) {
  std::error_code error;
  const fs::path full = fs::absolute(path, error);
  return (error ? fs::path(path) : full).lexically_normal().string();
}

std::string above(const std::string& directory) {
  return directory.size() < 2 ? std::string()
                              : directory.substr(0, directory.rfind('/', directory.size() - 2) + 1);
}

std::string joined(const std::string& base, const std::string& path) {
  return (fs::path(base) / path).lexically_normal().string();
}

}  // namespace

ProjectAround project_around(const std::string& script, const Lister& list) {
  ProjectAround out;
  std::string directory = directory_of(absolute(script));
  for (int level = 0; level < kMaxLevels && directory.size() > 1; ++level) {
    out.directories.push_back(directory);
    out.has_root = is_project_root(list(directory));
    if (out.has_root) break;
    directory = above(directory);
  }
  return out;
}

std::string behind_variables(const LaunchLine& launch) {
  const std::string path = launch.script_path();
  if (launch.script.literal) return path;
  const std::size_t last = path.find_last_of("$`})");
  const std::size_t slash = last == std::string::npos ? last : path.find('/', last);
  return slash == std::string::npos ? std::string() : path.substr(slash + 1);
}

bool names_script(const LaunchLine& launch, const std::string& script, const std::string& root,
                  const std::function<bool(const std::string& path)>& exists) {
  const std::string path = behind_variables(launch);
  if (path.empty() || path.substr(path.rfind('/') + 1) != script.substr(script.rfind('/') + 1))
    return false;
  if (path.starts_with('/')) return path == script;
  for (std::string base = directory_of(launch.file); base.size() >= root.size();
       base = above(base)) {
    // `cd project` leads into the folder that the file itself is in.
    const bool stays = launch.folder.empty() || base.ends_with('/' + launch.folder);
    const std::string named = joined(stays ? base : joined(base, launch.folder), path);
    if (named == script) return true;
    if (exists(named)) return false;
    if (base.empty()) break;
  }
  return false;
}

ProjectAround Surroundings::project_of(const std::string& script) {
  const std::string directory = directory_of(absolute(script));
  const std::lock_guard lock(mutex_);
  auto known = projects_.find(directory);
  if (known == projects_.end())
    known = projects_.emplace(directory, project_around(script, list_)).first;
  return known->second;
}

void Surroundings::read_folder(const std::string& folder, const std::string& root, bool is_nested,
                               std::vector<LaunchLine>& out, int& left) {
  std::vector<std::string> folders;
  for (const DirectoryEntry& entry : list_(folder)) {
    const std::string path = folder + entry.name;
    if (entry.is_directory && !is_nested && is_launch_folder(entry.name))
      folders.push_back(path + '/');
    if (entry.is_directory || launch_document(path) == LaunchDocument::none || left <= 0) continue;
    if (given_.contains(path) || (left_out_ && left_out_(path))) continue;
    if (entry.is_link && links_out_of(path, root)) continue;
    --left;
    const auto text = cache_.read(path);
    if (!text || !may_hold_launches(*text)) continue;
    auto lines = read_launch_document(path, *text);
    if (!lines.empty()) files_.insert(path);
    std::move(lines.begin(), lines.end(), std::back_inserter(out));
  }
  for (const std::string& each : folders) read_folder(each, root, true, out, left);
}

const std::vector<LaunchLine>& Surroundings::lines_in(const std::string& directory,
                                                      const std::string& root) {
  const auto known = lines_.find({directory, root});
  if (known != lines_.end()) return known->second;
  std::vector<LaunchLine> lines;
  int left = kMaxFiles;
  read_folder(directory, root, false, lines, left);
  return lines_.emplace(std::pair(directory, root), std::move(lines)).first->second;
}

std::vector<LaunchLine> Surroundings::launches_of(const std::string& script) {
  std::vector<LaunchLine> out;
  const ProjectAround project = project_of(script);
  if (project.directories.empty()) return out;
  const std::string path = absolute(script);
  const std::string& root = project.directories.back();
  const auto exists = [](const std::string& file) {
    std::error_code error;
    return fs::exists(file, error);
  };
  const std::lock_guard lock(mutex_);
  // A folder of launch scripts is read once more from the directory above it.
  const auto known = [&](const LaunchLine& launch) {
    return std::any_of(out.begin(), out.end(), [&](const LaunchLine& other) {
      return other.file == launch.file && other.script.line == launch.script.line;
    });
  };
  for (const std::string& directory : project.directories)
    for (const LaunchLine& launch : lines_in(directory, root))
      if (names_script(launch, path, root, exists) && !known(launch)) out.push_back(launch);
  return out;
}

bool Surroundings::holds(const std::string& file) const {
  const std::lock_guard lock(mutex_);
  return files_.contains(file);
}

bool Surroundings::holds_script(const std::string& file) const {
  return holds(file) && launch_document(file) == LaunchDocument::shell;
}

}  // namespace bench::diagnose
