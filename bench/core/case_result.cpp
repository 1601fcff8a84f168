#include "bench/core/case_result.hpp"

#include <limits>

namespace bench {

const char* case_status_name(CaseStatus status) {
  constexpr const char* kNames[] = {"done", "skipped", "wrong", "failed"};
  return kNames[static_cast<int>(status)];
}

double CaseResult::metric(const std::string& name) const {
  const auto found = metrics.find(name);
  return found == metrics.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
}

}  // namespace bench
