// Files that a run imports by a name which it makes: import_module("models." + name + "_model").
#pragma once

#include "diagnose/driver/directory.hpp"
#include "diagnose/model/module.hpp"

#include <string>
#include <vector>

namespace bench::diagnose {

// One call of that kind.
struct LookedUpImport {
  NodeId call = kNoNode;
  std::string pattern;  // a dotted name with * for what only a run knows: models.*_model
};

// Those of which no folder is written out are left out, and so are whole names, which are imports
// as any (Module::imports()).
std::vector<LookedUpImport> looked_up_imports(const Module& module);

// Dotted names of the files below a directory (with a slash at its end, or empty) that the pattern
// may mean, sorted. None where there are too many to tell: a zoo of models.
std::vector<std::string> modules_like(const std::string& pattern, const std::string& directory,
                                      const Lister& list);

}  // namespace bench::diagnose
