#include "diagnose/driver/launch_table.hpp"

#include "diagnose/driver/accelerate_config.hpp"
#include "diagnose/driver/notebook.hpp"
#include "diagnose/launch/launch_documents.hpp"
#include "diagnose/launch/python_commands.hpp"
#include "diagnose/launch/shell_script.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>

namespace bench::diagnose {
namespace {

namespace fs = std::filesystem;

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

void LaunchTable::note_files(const std::vector<SourceFile>& files) {
  std::set<std::string> given;
  for (const SourceFile& file : files) {
    if (paths_.insert(file.path).second) ++named_[file_name(file.path)];
    std::error_code error;
    if (file.is_named) given.insert(fs::absolute(file.path, error).lexically_normal().string());
  }
  surroundings_.set_given(std::move(given));
  for (const SourceFile& file : files) note_file(file);
}

// What cells of a notebook and commands in other programs start: evidence under a name of its own,
// since the file itself is checked as well.
void LaunchTable::note_commands(const SourceFile& file) {
  const auto text = cache_.read(file.path);
  if (!text || !may_hold_commands(*text)) return;
  std::vector<LaunchLine> launches;
  const std::string name = file.path + "#commands";
  if (file.type == FileType::notebook)
    launches = read_shell_script(name, notebook_source(*text).commands);
  else
    launches = commands_in_python(name, *text);
  const std::string own = file_name(file.path);
  for (LaunchLine& launch : launches) {
    const std::string script = launch.script_name();
    // How a program starts itself is for the rules, which see the condition.
    if (script == own) continue;
    launch.is_example = true;
    documents_.insert(name);
    launches_[script].push_back(std::move(launch));
  }
}

void LaunchTable::note_file(const SourceFile& file) {
  if (file.type == FileType::notebook || file.type == FileType::python) return note_commands(file);
  const bool is_document = file.type == FileType::other;
  if (!is_document && file.type != FileType::shell) return;
  const auto text = cache_.read(file.path);
  if (!text || !may_hold_launches(*text)) return;
  if (is_document) documents_.insert(file.path);
  for (LaunchLine& launch : read_launch_document(file.path, *text)) {
    const std::string script = launch.script_name();
    launches_[script].push_back(std::move(launch));
  }
}

bool LaunchTable::is_only_one(const std::string& path) const {
  const auto known = named_.find(file_name(path));
  return known != named_.end() && known->second == 1;
}

// eval/probe/main.py in a line of another folder, beside eval/attack/main.py: started from wherever
// the path leads to a script, and one is at its end.
bool LaunchTable::is_of_another_folder(const LaunchLine& launch, const std::string& script) const {
  const std::string named = launch.script_path();
  const auto is_at = [&](const std::string& path) {
    return path == named || path.ends_with('/' + named);
  };
  return named.find('/') != std::string::npos && !is_only_one(script) && !is_at(script) &&
         std::any_of(paths_.begin(), paths_.end(), is_at);
}

// Among several scripts of one name: the one at the path that the launch line gives, from its own
// folder; where none is there, those in folders below or above, and the only one of its name.
bool LaunchTable::may_start(const LaunchLine& launch, const SourceFile& script) const {
  const auto is_given = [&](const std::string& path) { return paths_.contains(path); };
  if (names_script(launch, script.path, prefix_of(script.top), is_given)) return true;
  // A README speaks of many scripts; only a path that leads to this one is about it.
  if (documents_.contains(launch.file)) return false;
  const fs::path folder = fs::path(launch.file).parent_path();
  // $(dirname "$0")/test.py is the one beside the shell script.
  const std::string path = launch.script.literal ? launch.script_path() : behind_variables(launch);
  for (const fs::path& start : {folder / launch.folder, folder}) {
    const std::string named = (start / path).lexically_normal().string();
    if (!path.empty() && paths_.contains(named)) return named == script.path;
  }
  if (is_of_another_folder(launch, script.path)) return false;
  const auto holds = [](const fs::path& outer, const fs::path& inner) {
    return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first ==
           outer.end();
  };
  const fs::path home = fs::path(script.path).parent_path();
  // scripts/train.sh beside src/train.py: started from src, and no other script has the name.
  return holds(folder, home) || holds(home, folder) || is_only_one(script.path);
}

// srun ./rank.sh starts the script once for each task: what stands in it is started by srun.
void LaunchTable::start_by_srun(std::vector<LaunchLine>& lines) const {
  for (LaunchLine& line : lines) {
    if (line.launcher != Launcher::python) continue;
    const auto starts = launches_.find(file_name(line.file));
    if (starts == launches_.end() || starts->second.size() != 1) continue;
    const LaunchLine& start = starts->second.front();
    if (start.launcher != Launcher::srun || documents_.contains(start.file)) continue;
    line.launcher = Launcher::srun;
    line.flags = start.flags;
  }
}

std::vector<LaunchLine> LaunchTable::lines_of(const SourceFile& script) {
  std::vector<LaunchLine> out;
  const auto launched = launches_.find(file_name(script.path));
  if (launched != launches_.end())
    std::copy_if(launched->second.begin(), launched->second.end(), std::back_inserter(out),
                 [&](const LaunchLine& launch) { return may_start(launch, script); });
  start_by_srun(out);
  for (LaunchLine& launch : out) read_accelerate_config(launch, prefix_of(script.top), cache_);
  if (!script.is_named) return out;
  for (LaunchLine& launch : surroundings_.launches_of(script.path)) {
    // Few lines name a config file: for the others the project is not looked for again.
    if (launch.launcher == Launcher::accelerate)
      if (const ProjectAround project = surroundings_.project_of(script.path);
          !project.directories.empty())
        read_accelerate_config(launch, project.directories.back(), cache_);
    out.push_back(std::move(launch));
  }
  return out;
}

std::vector<LaunchLine> LaunchTable::lines_beside(const std::vector<LaunchLine>& launches,
                                                  const std::string& file) const {
  std::set<std::string> scripts;
  for (const LaunchLine& launch : launches) scripts.insert(launch.script_name());
  std::vector<LaunchLine> out;
  for (const std::string& script : scripts)
    if (const auto known = launches_.find(script); known != launches_.end())
      std::copy_if(known->second.begin(), known->second.end(), std::back_inserter(out),
                   [&](const LaunchLine& launch) {
                     return launch.file != file && !documents_.contains(launch.file);
                   });
  return out;
}

bool LaunchTable::is_evidence(const std::string& file) const {
  return documents_.contains(file) || (surroundings_.holds(file) && !is_beside(file));
}

std::vector<std::string> LaunchTable::directories_above_given(const std::string& script) {
  ProjectAround project = surroundings_.project_of(script);
  if (!project.has_root || project.directories.empty()) return {};
  project.directories.erase(project.directories.begin());
  return project.directories;
}

}  // namespace bench::diagnose
