// What a shell line says of the environment it enters, where the name of it tells versions: conda
// activate pytorch_p36, source py3.7/bin/activate, module load python/3.7, python3.7 -m venv.
#pragma once

#include "diagnose/config/newest_versions.hpp"

#include <string_view>

namespace bench::diagnose {

NewestVersions read_environment(std::string_view line);

}  // namespace bench::diagnose
