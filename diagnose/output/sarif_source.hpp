// The SARIF document as JSON, for callers that add runs of their own to it.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "diagnose/finding.hpp"

namespace bench::diagnose {

nlohmann::ordered_json sarif_of(const std::vector<Finding>& findings);

}  // namespace bench::diagnose
