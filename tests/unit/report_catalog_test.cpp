#include "bench/core/metric_catalog.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace bench {
namespace {

TEST(MetricCatalog, NamesAreUniqueAndDescribed) {
  std::set<std::string_view> names;
  for (const MetricEntry& entry : metric_catalog()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_FALSE(entry.title.empty()) << entry.name;
    EXPECT_TRUE(entry.description.ends_with(".")) << entry.name;
  }
}

TEST(MetricCatalog, FindsPerDeviceMetricsByIndex) {
  ASSERT_NE(find_metric("peak_bytes_gpu12"), nullptr);
  EXPECT_EQ(find_metric("peak_bytes_gpu12")->name, "peak_bytes_gpu<i>");
  EXPECT_EQ(find_metric("peak_bytes_gpu"), nullptr);
  EXPECT_EQ(find_metric("peak_bytes_gpux"), nullptr);
  EXPECT_EQ(find_metric("peak_bytes_gpu<i>"), nullptr);
  ASSERT_NE(find_metric("verified"), nullptr);
}

TEST(MetricCatalog, FormatsByHint) {
  EXPECT_EQ(format_metric(MetricHint::duration_ms, 12.34), "12.3 ms");
  EXPECT_EQ(format_metric(MetricHint::bytes, 1.5 * (1 << 30)), "1.50 GiB");
  EXPECT_EQ(format_metric(MetricHint::ratio, 0.414), "41 %");
  EXPECT_EQ(format_metric(MetricHint::ratio, 0.0412), "4.1 %");
  EXPECT_EQ(format_metric(MetricHint::ratio, 0), "0 %");
  EXPECT_EQ(format_metric(MetricHint::ratio, 0.0004), "<0.1 %");
  EXPECT_EQ(format_metric(MetricHint::ratio, 0.0996), "10 %");
  EXPECT_EQ(format_metric(MetricHint::factor, 1.9), "1.90x");
  EXPECT_EQ(format_metric(MetricHint::rate, 812), "812 /s");
  EXPECT_EQ(format_metric(MetricHint::rate, 8123), "8.12 k/s");
  EXPECT_EQ(format_metric(MetricHint::count, 4), "4");
  EXPECT_EQ(format_metric(MetricHint::flag, 1), "yes");
  EXPECT_EQ(format_metric(MetricHint::bytes, std::nan("")), "-");
}

}  // namespace
}  // namespace bench
