// The SARIF document as JSON, for callers that add runs of their own to it.
#pragma once

#include "diagnose/finding.hpp"
#include "diagnose/notice.hpp"

#include <nlohmann/json.hpp>

#include <vector>

namespace bench::diagnose {

nlohmann::ordered_json sarif_of(const std::vector<Finding>& findings,
                                const std::vector<Notice>& notices = {});

}  // namespace bench::diagnose
