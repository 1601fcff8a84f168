#include "diagnose/command/verdict.hpp"

#include "bench/core/error.hpp"
#include "diagnose/driver/source_files.hpp"
#include "diagnose/output/render.hpp"

#include <algorithm>
#include <cstdio>

namespace bench::diagnose {
namespace {

bool names(const std::vector<std::string>& paths, const std::string& file) {
  return std::any_of(paths.begin(), paths.end(),
                     [&](const std::string& path) { return shown_path(path) == file; });
}

}  // namespace

int exit_code_of(const std::vector<Finding>& findings) {
  const bool found = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.severity != Severity::info;
  });
  return found ? kExitFindings : kExitClean;
}

bool print_notices(const std::vector<Notice>& notices, const DiagnoseOptions& options) {
  bool refused = false;
  for (const Notice& notice : notices) {
    std::fprintf(stderr, "bench: %s: %s\n", notice.unchecked ? "error" : "note",
                 notice_line(notice).c_str());
    refused = refused || (notice.unchecked && names(options.paths, notice.file));
  }
  return refused;
}

void print_known(const std::string& baseline, std::size_t known, std::size_t gone) {
  std::fprintf(stderr, "bench: note: %s: %s known and not shown, %zu gone\n",
               printable(baseline).c_str(), counted(known, "finding").c_str(), gone);
}

std::string counted(std::size_t number, const std::string& noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : noun == "fix" ? "es" : "s");
}

}  // namespace bench::diagnose
