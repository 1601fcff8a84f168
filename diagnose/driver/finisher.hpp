// From what rules reported to what is shown: drops findings that comments silence and those below
// the asked severity, adds excerpts, costs, and regions as editors count them.
#pragma once

#include "diagnose/driver/module_cache.hpp"
#include "diagnose/driver/selection.hpp"
#include "diagnose/finding.hpp"
#include "diagnose/model/program.hpp"

#include <string>
#include <vector>

namespace bench::diagnose {

class Finisher {
 public:
  Finisher(const ModuleCache& cache, const Selection& selection)
      : cache_(cache), selection_(selection) {}

  std::vector<Finding> finish(const Program& program, std::vector<Finding> found) const;

 private:
  bool is_silenced_beside(const Finding& finding) const;
  std::string line_of_file(const std::string& file, std::uint32_t line) const;
  void locate(const Program& program, Finding& finding) const;
  void map_notebook(Finding& finding) const;

  const ModuleCache& cache_;
  const Selection& selection_;
};

}  // namespace bench::diagnose
