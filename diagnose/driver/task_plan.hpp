// Which of many files are scripts of their own, and which are modules that others bring into their
// programs. Settled from the text of import statements; of the files, only those that change
// Python's search path are parsed for it.
#pragma once

#include "diagnose/driver/module_cache.hpp"
#include "diagnose/driver/source_files.hpp"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace bench::diagnose {

class TaskPlan {
 public:
  TaskPlan(const std::vector<SourceFile>& files, ModuleCache& cache);

  // Nothing imports these, or they have a __main__ guard.
  const std::vector<SourceFile>& scripts() const { return scripts_; }
  // The others, in the order given.
  const std::vector<SourceFile>& modules() const { return modules_; }
  struct Entries {
    std::vector<SourceFile> to_others;      // they bring other files that are not covered
    std::vector<SourceFile> to_themselves;  // all that they import is covered, or comes with others
  };
  // Modules from which imports lead to all that are not covered. A bound on the files of a program
  // may still leave some out.
  Entries entries_to_modules(const std::function<bool(const std::string& path)>& covered) const;

 private:
  // An import of a given file that means no given one beside or above it.
  struct LostImport {
    std::string importer;
    std::string top;
    std::string name;
  };

  void note_imports(const SourceFile& file, std::string_view text);
  void note_added(const SourceFile& file, ModuleCache& cache);
  void look_in_added();
  std::set<std::string> reached_from(const std::string& module) const;

  std::vector<SourceFile> scripts_;
  std::vector<SourceFile> modules_;
  std::set<std::string> given_;
  std::vector<LostImport> lost_;
  std::set<std::string> added_;  // directories that files add to the search path
  std::map<std::string, std::vector<std::string>> imports_;  // of given files, by importer
};

}  // namespace bench::diagnose
