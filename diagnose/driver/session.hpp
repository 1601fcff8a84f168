// One run over many files: builds the program that begins with each and has the rules check it.
// What programs share (parsed files, launch lines, settings of projects) is read once. Safe to use
// from several threads once the files are noted.
#pragma once

#include "diagnose/config/config_entry.hpp"
#include "diagnose/config/newest_versions.hpp"
#include "diagnose/driver/assemble.hpp"
#include "diagnose/driver/ignore_comments.hpp"
#include "diagnose/driver/launch_table.hpp"
#include "diagnose/driver/module_cache.hpp"
#include "diagnose/driver/notices.hpp"
#include "diagnose/driver/options.hpp"
#include "diagnose/driver/package_pages.hpp"
#include "diagnose/driver/project_configs.hpp"
#include "diagnose/driver/project_scripts.hpp"
#include "diagnose/driver/seen_files.hpp"
#include "diagnose/driver/source_files.hpp"
#include "diagnose/finding.hpp"
#include "diagnose/model/program.hpp"
#include "diagnose/notice.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace bench::diagnose {

// What a program that begins with a file is for: all that the file brings, or the file alone where
// it only defines things, for all else has programs of its own.
enum class Purpose : std::uint8_t { whole, itself };

class Session {
 public:
  Session(const DiagnoseOptions& options, Reader reader, Lister list);

  std::vector<Finding> run_file(const SourceFile& file, Purpose purpose);
  // Hands the program of one file to `visit`, without running rules.
  void visit(const SourceFile& file, const std::function<void(const Program&)>& visit);

  void note_files(const std::vector<SourceFile>& files);
  void note_unreadable(const std::vector<std::string>& directories);
  void note_emptied(const std::vector<Notice>& notices);

  // Once all files have run: notices on comments in these that silence nothing.
  void note_unused_ignores(const std::vector<SourceFile>& files);

  // Python files that rules have seen, in whichever program.
  bool covered(const std::string& path) const;
  std::set<std::string> covered() const;
  ModuleCache& cache() { return cache_; }
  std::vector<Notice> notices() const { return notices_.all(); }

 private:
  std::optional<std::string> read(const SourceFile& file, bool (*is_wanted)(std::string_view));
  void note_unparsed(const AssembledProgram& assembled);
  std::string error_place(const Module& module) const;

  // What a file stands in.
  ProgramContext context_of(const SourceFile& file);
  std::function<bool(const std::string&, const TextTest&)> asker_of(const SourceFile& file);
  std::vector<std::string> scripts_above(const SourceFile& file);
  std::vector<std::pair<std::string, std::uint32_t>> where(const SourceFile& file,
                                                           const ProjectScripts::LineOf& line_of);
  std::vector<ShippedValue> configured(const SourceFile& file, const std::string& key);
  std::string root_of(const SourceFile& file);
  std::vector<std::string> above_given(const SourceFile& file);
  // Above a file that was given alone too, where it lies below its project's root.
  std::string project_root_of(const SourceFile& file);
  NewestVersions versions_of(const SourceFile& file, const std::vector<LaunchLine>& launches);
  NewestVersions requirements_of(const SourceFile& file);

  // No finding stands in it: it is excluded, and not named itself.
  bool is_left_out(const std::string& path) const;
  std::vector<Finding> checked(const Program& program);
  std::vector<Finding> run_script(const SourceFile& file, Purpose purpose);
  std::vector<Finding> run_launches(const SourceFile& file);
  std::vector<Finding> run_config(const SourceFile& file);
  std::vector<Finding> run_without_script(const SourceFile& file, std::vector<LaunchLine> launches,
                                          std::vector<ConfigEntry> configs);

  const DiagnoseOptions& options_;
  ModuleCache cache_;
  Lister list_;
  LaunchTable launches_;
  PackagePages pages_;
  ProjectConfigs configs_;
  ProjectScripts scripts_;
  std::optional<LaunchLine> given_launch_;
  std::set<std::string> named_;   // files, as absolute paths
  std::set<std::string> shells_;  // shell scripts, whatever their names
  Notices notices_;
  UsedIgnores used_ignores_;
  SeenFiles seen_;
  mutable std::mutex mutex_;
  std::set<std::string> covered_;
  std::map<std::string, NewestVersions> requirements_;  // by directory
};

}  // namespace bench::diagnose
