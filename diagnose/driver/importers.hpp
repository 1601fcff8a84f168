// Which scripts of a project run a module: those that import it, if through other modules.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bench::diagnose {

// The import, in a file at `importer`, may mean the file at `module`; both as paths from one place.
bool may_import(const std::string& importer, std::string_view import, const std::string& module);

// Files of `files` that lead to `module` by imports, nearest first. `read` gives a file's text.
std::vector<std::string> importers_of(
    const std::string& module, const std::vector<std::string>& files,
    const std::function<std::optional<std::string>(const std::string& path)>& read);

}  // namespace bench::diagnose
