// What every action of `bench diagnose` ends with: notices on standard error and an exit code.
#pragma once

#include "diagnose/driver/options.hpp"
#include "diagnose/finding.hpp"
#include "diagnose/notice.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace bench::diagnose {

// 1 when something needs a change; notes alone leave a script clean.
int exit_code_of(const std::vector<Finding>& findings);

// To standard error; true when a file that was named, not met in a folder, could not be checked.
bool print_notices(const std::vector<Notice>& notices, const DiagnoseOptions& options);

// To standard error: what a baseline has hidden, and how many of its findings are no more.
void print_known(const std::string& baseline, std::size_t known, std::size_t gone);

// "1 fix", "2 fixes", "3 findings".
std::string counted(std::size_t number, const std::string& noun);

}  // namespace bench::diagnose
