// Values that a shell script or a document gives for the key of a configuration: --grad-clip 1,
// optim.grad_clip=1, OPTIM.GRAD_CLIP 1, and the lines of a config that a README shows.
#pragma once

#include "diagnose/model/value.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace bench::diagnose {

// One value for each place that gives one, unknown where it is not written out. The key's name in
// prose gives none.
std::vector<Value> overrides_in(std::string_view text, std::string_view key);

}  // namespace bench::diagnose
