// Which of many files are scripts of their own, and which are modules that others bring into their
// programs. Settled from the text of import statements, before anything is parsed.
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

// What the import statements of a text name, with the names that `from a import b` may take from a
// package (a and a.b).
std::vector<std::string> imported_modules(std::string_view text);

class TaskPlan {
 public:
  TaskPlan(const std::vector<SourceFile>& files, const ModuleCache& cache);

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
  void note_imports(const SourceFile& file, std::string_view text);
  std::set<std::string> reached_from(const std::string& module) const;

  std::vector<SourceFile> scripts_;
  std::vector<SourceFile> modules_;
  std::set<std::string> given_;
  std::map<std::string, std::vector<std::string>> imports_;  // of given files, by importer
};

}  // namespace bench::diagnose
