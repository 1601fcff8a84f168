// The launch lines of a session, by the script that they start: from the shell scripts and
// documents among the given files, and for a script that was given alone from what lies beside it.
#pragma once

#include "diagnose/driver/module_cache.hpp"
#include "diagnose/driver/source_files.hpp"
#include "diagnose/driver/surroundings.hpp"
#include "diagnose/launch/launch_line.hpp"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace bench::diagnose {

class LaunchTable {
 public:
  LaunchTable(const ModuleCache& cache, Lister list) : cache_(cache), surroundings_(cache, list) {}

  // Before any question; the files stay the same from then on.
  void note_files(const std::vector<SourceFile>& files);

  // Files beside scripts of which the test is true are no evidence. Before any question, too.
  void leave_out(std::function<bool(const std::string& path)> test) {
    surroundings_.leave_out(std::move(test));
  }

  // The lines that start a script. Safe to call from several threads.
  std::vector<LaunchLine> lines_of(const SourceFile& script);
  // Lines of other files that start the scripts which these start: other nodes of a job may have
  // shell scripts of their own.
  std::vector<LaunchLine> lines_beside(const std::vector<LaunchLine>& launches,
                                       const std::string& file) const;
  // The file is evidence only: no finding about it is wanted.
  bool is_evidence(const std::string& file) const;
  // A shell script beside a script that was given alone, which it starts.
  bool is_beside(const std::string& file) const { return surroundings_.holds_script(file); }
  // It was named to the command, or lies in a directory that was.
  bool is_given(const std::string& file) const { return paths_.contains(file); }
  // Directories of the project around a script that was given alone, above its own.
  std::vector<std::string> directories_above_given(const std::string& script);

 private:
  void note_file(const SourceFile& file);
  void note_commands(const SourceFile& file);
  bool is_only_one(const std::string& path) const;  // of its file name
  bool is_of_another_folder(const LaunchLine& launch, const std::string& script) const;
  bool may_start(const LaunchLine& launch, const SourceFile& script) const;
  void start_by_srun(std::vector<LaunchLine>& lines) const;

  const ModuleCache& cache_;
  Surroundings surroundings_;
  std::map<std::string, std::vector<LaunchLine>> launches_;  // by the script's file name
  std::set<std::string> paths_;
  std::map<std::string, int> named_;  // how many files have a name
  std::set<std::string> documents_;   // that are evidence only
};

}  // namespace bench::diagnose
