// What lies beside a script that is given alone: the project around it, and the launch lines there
// that start it. Directories are read once for all scripts; nothing above the project's root, no
// link that leads out of it, and a bounded number of files.
#pragma once

#include "diagnose/driver/directory.hpp"
#include "diagnose/driver/module_cache.hpp"
#include "diagnose/launch/launch_line.hpp"

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace bench::diagnose {

// The directories from a script's own up to its project's root, nearest first, absolute and with a
// slash at their end. The root holds .git, pyproject.toml or setup.py.
struct ProjectAround {
  std::vector<std::string> directories;
  bool has_root = false;  // false: a bounded number of directories, of whom nobody knows
};
ProjectAround project_around(const std::string& script, const Lister& list);

// "$ROOT/tools/train.py" is tools/train.py below a folder that is not known; empty where nothing
// stands behind the last variable.
std::string behind_variables(const LaunchLine& launch);

// The launch line starts the script: the path it gives, from its own folder or from one above it
// up to `root`, is the script's. `exists` tells whether there is a file at a path.
bool names_script(const LaunchLine& launch, const std::string& script, const std::string& root,
                  const std::function<bool(const std::string& path)>& exists);

class Surroundings {
 public:
  Surroundings(const ModuleCache& cache, Lister list) : cache_(cache), list_(std::move(list)) {}

  // Files that were given themselves are no surroundings.
  void set_given(std::set<std::string> absolute_paths) { given_ = std::move(absolute_paths); }

  // Nor are those of which the test is true.
  void leave_out(std::function<bool(const std::string& path)> test) { left_out_ = std::move(test); }

  // Lines beside the script that start it. Safe to call from several threads.
  std::vector<LaunchLine> launches_of(const std::string& script);
  // Whether a launch line came from this file.
  bool holds(const std::string& file) const;
  // From this one, a shell script, which is as much a part of the program as a module of it.
  bool holds_script(const std::string& file) const;
  ProjectAround project_of(const std::string& script);

 private:
  const std::vector<LaunchLine>& lines_in(const std::string& directory, const std::string& root);
  void read_folder(const std::string& folder, const std::string& root, bool is_nested,
                   std::vector<LaunchLine>& out, int& left);

  const ModuleCache& cache_;
  Lister list_;
  std::set<std::string> given_;
  std::function<bool(const std::string& path)> left_out_;
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::vector<LaunchLine>> lines_;
  std::map<std::string, ProjectAround> projects_;  // by a script's directory
  std::set<std::string> files_;
};

}  // namespace bench::diagnose
