// Follows "Add a metric" of docs/architecture.md: the page's own code is compiled in and used.
#include "bench/core/case_result.hpp"
#include "bench/core/metric_catalog.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace bench {
namespace {

using Hint = MetricHint;
using Better = MetricBetter;

constexpr MetricEntry kExample[] = {
#include <metric_example/row.inc>
};

#include <metric_example/function.inc>

TEST(MetricExample, FillsWhatItsRowDescribes) {
  CaseResult result;
  result.metrics = {{"step_ms_p10", 95}, {"step_ms_p50", 100}, {"step_ms_p90", 120}};
  add_step_jitter(result);
  EXPECT_DOUBLE_EQ(result.metric(std::string(kExample[0].name)), 0.25);
  EXPECT_EQ(format_metric(kExample[0].hint, 0.25), "25 %");
}

TEST(MetricExample, StaysAbsentWithoutSamples) {
  CaseResult result;
  add_step_jitter(result);
  EXPECT_TRUE(std::isnan(result.metric("step_jitter")));
}

TEST(MetricExample, IsNotInTheCatalogueYet) { EXPECT_EQ(find_metric(kExample[0].name), nullptr); }

}  // namespace
}  // namespace bench
