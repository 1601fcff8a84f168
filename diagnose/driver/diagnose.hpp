// `bench diagnose` without its flags and renderers: paths in, sorted findings out.
#pragma once

#include "diagnose/driver/module_cache.hpp"
#include "diagnose/driver/options.hpp"
#include "diagnose/finding.hpp"
#include "diagnose/model/program.hpp"
#include "diagnose/notice.hpp"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace bench::diagnose {

struct DiagnoseResult {
  std::vector<Finding> findings;  // by file, line, column, rule
  std::vector<Notice> notices;    // by file
  std::size_t files = 0;          // looked at
  std::set<std::string> checked;  // those, and the modules of the project that they bring
};

DiagnoseResult diagnose(const DiagnoseOptions& options);
DiagnoseResult diagnose(const DiagnoseOptions& options, const Reader& reader);

// Builds the program of each script or config under `paths` and hands it to `visit`, one by one.
// What there is to say on the files.
std::vector<Notice> for_each_program(const DiagnoseOptions& options,
                                     const std::function<void(const Program& program)>& visit);
std::vector<Notice> for_each_program(const DiagnoseOptions& options, const Reader& reader,
                                     const std::function<void(const Program& program)>& visit);

// Both for files in memory, by name, of which one is the script. For tests.
std::vector<Finding> diagnose_texts(const std::map<std::string, std::string>& files,
                                    const std::string& script, const DiagnoseOptions& options);
void for_each_program_of_texts(const std::map<std::string, std::string>& files,
                               const std::string& script, const DiagnoseOptions& options,
                               const std::function<void(const Program& program)>& visit);

}  // namespace bench::diagnose
