// The Python files of the projects that a session looks at, for questions about more than one
// program: how the script that wrote a checkpoint saved it. Nothing is walked or read before the
// first question, which only a finding asks; then each project is walked once, a bounded number of
// files, without following links, and each question is asked of it once. Safe to ask from several
// threads.
#pragma once

#include "diagnose/driver/directory.hpp"
#include "diagnose/driver/module_cache.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bench::diagnose {

class ProjectScripts {
 public:
  ProjectScripts(const ModuleCache& cache, Lister list) : cache_(cache), list_(std::move(list)) {}

  // Some Python file of the project in the directory `root` has a text that is accepted, or the
  // cells of a notebook together have. What accepts texts depends on nothing but `question`.
  bool any(const std::string& root, const std::string& question,
           const std::function<bool(std::string_view text)>& accepts);

  // The first of the files whose texts are accepted, nearest to the root first, with the line at
  // which the test says that it is.
  using LineOf = std::function<std::optional<std::uint32_t>(std::string_view text)>;
  std::vector<std::pair<std::string, std::uint32_t>> where(const std::string& root,
                                                           const LineOf& line_of);

  // Files of the project that lead to one of them by imports, nearest first (importers.hpp).
  std::vector<std::string> importers(const std::string& root, const std::string& file);

 private:
  struct Files {
    std::vector<std::string> scripts;
    std::vector<std::string> notebooks;
  };
  const Files& files_of(const std::string& root);
  void walk(const std::string& root, Files& out) const;

  const ModuleCache& cache_;
  Lister list_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Files>> files_;          // by root
  std::map<std::pair<std::string, std::string>, bool> answers_;  // by root and question
};

}  // namespace bench::diagnose
