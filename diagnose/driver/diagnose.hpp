// `bench diagnose` without its flags and renderers: paths in, sorted findings out.
#pragma once

#include "diagnose/driver/module_cache.hpp"
#include "diagnose/driver/selection.hpp"
#include "diagnose/finding.hpp"
#include "diagnose/launch/launch_line.hpp"
#include "diagnose/model/program.hpp"
#include "diagnose/notice.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace bench::diagnose {

struct DiagnoseOptions {
  std::vector<std::string> paths;
  std::optional<std::string> launch;  // a launch line for the scripts
  std::optional<int> gpus;
  Selection selection;
  unsigned threads = 0;  // 0: as many as there are cores
  // A file that takes longer to parse is not a training script but an attack or a data dump.
  std::chrono::microseconds parse_limit = SyntaxTree::kParseLimit;
};

struct DiagnoseResult {
  std::vector<Finding> findings;  // by file, line, column, rule
  std::vector<Notice> notices;    // by file
  std::size_t files = 0;          // looked at
};

DiagnoseResult diagnose(const DiagnoseOptions& options);
DiagnoseResult diagnose(const DiagnoseOptions& options, const Reader& reader);

// Builds the program of each script or config under `paths` and hands it to `visit`, one by one.
void for_each_program(const DiagnoseOptions& options,
                      const std::function<void(const Program& program)>& visit);

// Both for files in memory, by name, of which one is the script. For tests.
std::vector<Finding> diagnose_texts(const std::map<std::string, std::string>& files,
                                    const std::string& script, const DiagnoseOptions& options);
void for_each_program_of_texts(const std::map<std::string, std::string>& files,
                               const std::string& script, const DiagnoseOptions& options,
                               const std::function<void(const Program& program)>& visit);

}  // namespace bench::diagnose
