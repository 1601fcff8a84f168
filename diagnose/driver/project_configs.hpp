// The config files of the projects that a session looks at. Nothing is walked or read before the
// first question, which only a finding asks; then each project is walked once, a bounded number of
// files, without following links. Safe to ask from several threads.
#pragma once

#include "diagnose/config/config_entry.hpp"
#include "diagnose/config/shipped_value.hpp"
#include "diagnose/driver/directory.hpp"
#include "diagnose/driver/module_cache.hpp"
#include "diagnose/launch/launch_line.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace bench::diagnose {

class ProjectConfigs {
 public:
  ProjectConfigs(const ModuleCache& cache, Lister list) : cache_(cache), list_(std::move(list)) {}

  // What the project in the directory `root` ships for the key, for a script in it. A key spelt as
  // an option (--passes) asks for what pages beside the README (TRAINING.md) show of it, alone; one
  // of "accelerate." for what the configs of Accelerate say, which are of no training otherwise.
  std::vector<ShippedValue> values_of(const std::string& root, const std::string& script,
                                      const std::string& key);

  // Of directories from the script's own up, the first that has the mark of a root (.git,
  // pyproject.toml, setup.py); the tree `top` itself where none has.
  std::string root_among(const std::vector<std::string>& directories, const std::string& top);

 private:
  struct File {
    std::string path;
    std::string text;
    bool is_command = false;  // a shell script or a document
    bool is_read = false;     // `entries` or `launches` holds what is in the text
    std::vector<ConfigEntry> entries;
    std::vector<LaunchLine> launches;
  };
  struct Project {
    std::vector<File> files;
    std::vector<File> of_accelerate;
    bool is_complete = true;  // no bound was met
    std::vector<std::string> page_paths;
    std::vector<File> pages;  // read at the first question about them, within bounds of their own
    bool has_read_pages = false;
    bool has_all_pages = true;
  };

  Project& project_at(const std::string& root);
  void walk(const std::string& root, Project& out) const;
  bool take(const std::string& path, std::vector<File>& out, std::vector<File>& of_accelerate,
            std::size_t& bytes) const;
  void read_pages(Project& project) const;
  std::vector<ShippedValue> values_of_accelerate(const std::string& root, const std::string& key);
  std::vector<ShippedValue> values_in_pages(const std::string& root, const std::string& key);
  static const std::vector<ConfigEntry>& entries_of(File& file);
  static void add_overrides(File& file, const std::string& key, std::vector<ShippedValue>& out);

  const ModuleCache& cache_;
  Lister list_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Project>> projects_;  // by root
  std::map<std::string, std::string> roots_;                  // by the script's directory
};

}  // namespace bench::diagnose
