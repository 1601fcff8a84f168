// Where else a program looks for its imports: sys.path.insert(0, os.path.join(here, "lib")) and its
// kin, as far as the text decides them.
#pragma once

#include "diagnose/model/module.hpp"

#include <memory>
#include <string>
#include <vector>

namespace bench::diagnose {

// Directories inside `top`, each with a slash at its end, that these files of the script's program
// add to Python's search path, in the order of the files. A relative path is one of the directory
// that the script is started in, which is taken to be its own or one above it; of an absolute one
// of somebody's machine the ends are tried below `top`. Not all of them need to exist.
std::vector<std::string> added_directories(const std::vector<std::shared_ptr<const Module>>& files,
                                           const std::string& script, const std::string& top);

}  // namespace bench::diagnose
