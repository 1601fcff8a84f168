// Other files of the project that import one of the program: they may use it in ways that the
// program does not, in one process or with other loaders.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace bench::pitfalls::facts {

// Some file has an import that names the module.
bool is_imported_elsewhere(const Program& program, const diagnose::Module& module);

// Such a file has a text that is accepted; `question` says what is asked, with all that the test
// depends on.
bool any_importer(const Program& program, const diagnose::Module& module,
                  const std::string& question,
                  const std::function<bool(std::string_view text)>& accepts);

}  // namespace bench::pitfalls::facts
