// docs/metrics.md, generated from the metric catalogue; a test fails when the file is stale.
#pragma once

#include <string>

namespace bench::report {

std::string metrics_page();

}  // namespace bench::report
