// From what rules reported to what is shown: drops findings that comments silence, those of rules
// that are not wanted in the file and those below the asked severity, adds excerpts, costs, and
// regions as editors count them.
#pragma once

#include "diagnose/driver/ignore_comments.hpp"
#include "diagnose/driver/module_cache.hpp"
#include "diagnose/driver/options.hpp"
#include "diagnose/finding.hpp"
#include "diagnose/model/program.hpp"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace bench::diagnose {

class Finisher {
 public:
  // `shells` are shell scripts that no name tells. Which comments have silenced something is put
  // into `used`.
  Finisher(const ModuleCache& cache, const DiagnoseOptions& options,
           const std::set<std::string>& shells, UsedIgnores& used)
      : cache_(cache), options_(options), shells_(shells), used_(used) {}

  std::vector<Finding> finish(const Program& program, std::vector<Finding> found) const;

 private:
  using LinesByModule = std::map<const Module*, CommentLines>;
  bool is_silenced(const Module* module, const Finding& finding, LinesByModule& lines) const;
  bool is_silenced_by(const Finding& finding, std::uint32_t line, std::string_view text) const;
  bool is_silenced_in_shell(const Finding& finding) const;
  std::string line_of_file(const std::string& file, std::uint32_t line) const;
  void locate(const Program& program, Finding& finding) const;
  void map_notebook(Finding& finding) const;

  const ModuleCache& cache_;
  const DiagnoseOptions& options_;
  const std::set<std::string>& shells_;
  UsedIgnores& used_;
};

}  // namespace bench::diagnose
