// Files decoded and parsed, shared by the programs that import them. Safe to use from several
// threads; what it holds is bounded, and a module stays alive as long as a program uses it.
#pragma once

#include "diagnose/config/newest_versions.hpp"
#include "diagnose/driver/known_paths.hpp"
#include "diagnose/driver/source_text.hpp"
#include "diagnose/model/by_text.hpp"
#include "diagnose/model/module.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace bench::diagnose {

// Content of a file, or nothing. Tests read from memory.
using Reader = std::function<std::optional<std::string>(const std::string& path)>;

class ModuleCache {
 public:
  ModuleCache(Reader reader, Lister list, std::chrono::microseconds parse_limit)
      : reader_(std::move(reader)), paths_(std::move(list)), parse_limit_(parse_limit) {}

  // Null when there is no such file.
  std::shared_ptr<const Module> load(const std::string& path);
  // As UTF-8, whatever the file's encoding; nothing when there is no such file.
  std::optional<SourceText> source(const std::string& path) const;
  std::optional<std::string> read(const std::string& path) const;
  // versions_by_names() of a module that came from here, and what the cells of a notebook install;
  // worked out once for each file.
  NewestVersions versions_of(const Module& module);
  // For each of the module's imports the file of the tree that it means to a script of that
  // directory, or an empty path; found once for all scripts of the directory.
  using Targets = std::shared_ptr<const std::vector<std::string>>;
  Targets targets_of(const Module& module, const std::string& script, const std::string& top);
  // The file that an import means in a directory (with a slash at its end) of the search path;
  // empty where none is there.
  std::string file_in(const std::string& directory, const std::string& import,
                      const std::string& top);
  // links_out_of(), followed on the disk once for each directory and each link.
  bool leads_out(const std::string& path, const std::string& top);
  // Whether the module's text has other offsets than its file, so that no edit fits the file.
  bool is_decoded(const std::string& path) const;

 private:
  NewestVersions installed_by(const std::string& notebook) const;
  std::string target_of(const Module& module, const std::string& script, const std::string& import,
                        const std::string& top);
  // By a directory and its top, and by the import.
  using FoundImports = std::unordered_map<std::string, ByText<std::string>>;
  std::string first_of(FoundImports& known, const std::string& place, const std::string& import,
                       const std::string& top,
                       const std::function<std::vector<std::string>()>& candidates);

  // Source bytes kept after parsing; trees are about ten times as large.
  static constexpr std::size_t kMaxBytes = 24U << 20;
  // Paths kept of what imports mean: of 300 files in 20 directories, about 6 MiB.
  static constexpr std::size_t kMaxTargets = 1U << 16;

  Reader reader_;
  KnownPaths paths_;
  std::chrono::microseconds parse_limit_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const Module>> modules_;
  std::unordered_set<std::string> decoded_;
  std::unordered_map<std::string, NewestVersions> versions_;
  std::map<std::string, std::unordered_map<std::string, bool>>
      leading_out_;                                   // by top, and link or directory
  std::unordered_map<std::string, Targets> targets_;  // by module, directory of the script and top
  std::size_t target_count_ = 0;
  FoundImports beside_;  // in the importer's own directory, or where a relative import leads to
  FoundImports above_;   // in the script's directory and those above it
  FoundImports added_;   // in a directory that a program adds to its search path
  std::size_t found_count_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace bench::diagnose
