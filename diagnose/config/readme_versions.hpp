// What a README or the installation notes say of the versions a project was made with: "PyTorch
// 1.9.0", pip install torch==1.7.1, conda install pytorch cudatoolkit=11.3. A version that is said
// to be the least ("1.8+", "1.8 or newer") bounds nothing.
#pragma once

#include "diagnose/config/requirements.hpp"

#include <string_view>

namespace bench::diagnose {

NewestVersions read_readme(std::string_view text);

}  // namespace bench::diagnose
