// Which versions of frameworks a directory asks for: its requirement and lock files, and, where
// they leave it open, the install commands of its shell scripts, Dockerfiles and README and the
// lists of conda environments of any name; then those of a folder docker/ in it, and of the pages
// about installation in docs/.
#pragma once

#include "diagnose/config/requirements.hpp"
#include "diagnose/driver/directory.hpp"
#include "diagnose/driver/module_cache.hpp"
#include "diagnose/launch/launch_line.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace bench::diagnose {

// The directory is read once; links out of `top` are not followed.
NewestVersions requirements_in(const std::string& directory, const std::string& top,
                               const ModuleCache& cache, const Lister& list);

// What the files with the launch lines say of the environments they enter. One that says nothing
// may enter any.
NewestVersions environments_of(const std::vector<LaunchLine>& launches, const ModuleCache& cache);

// requirements.txt, setup.py, poetry.lock: says what a project is installed with.
bool is_requirement_file(std::string_view name);

// Install commands of a README, and versions that its text names: "PyTorch 1.9.0".
NewestVersions read_page(std::string_view text);

}  // namespace bench::diagnose
