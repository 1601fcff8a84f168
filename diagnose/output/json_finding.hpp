// The JSON object of one finding (INTERFACE), shared by the JSON renderer and by results of runs.
#pragma once

#include "diagnose/finding.hpp"

#include <nlohmann/json.hpp>

namespace bench::diagnose {

nlohmann::ordered_json json_of(const Finding& finding);

}  // namespace bench::diagnose
