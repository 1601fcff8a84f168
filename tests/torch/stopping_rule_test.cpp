// When a measurement has enough steps. No LibTorch: the rule sees nothing but numbers.
#include "training/jobs/stopping_rule.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace bench::training {
namespace {

std::vector<double> alternating(std::size_t count, double low, double high) {
  std::vector<double> samples;
  for (std::size_t i = 0; i < count; ++i) samples.push_back(i % 2 == 0 ? low : high);
  return samples;
}

TEST(StoppingRule, FewerThanSixSamplesHaveNoInterval) {
  EXPECT_TRUE(std::isinf(median_half_width({})));
  EXPECT_TRUE(std::isinf(median_half_width(std::vector<double>(5, 100.0))));
  EXPECT_EQ(median_half_width(std::vector<double>(6, 100.0)), 0);
}

TEST(StoppingRule, IntervalIsThatOfTheOrderStatistics) {
  // 100 samples 1..100: 1.96 * 10 / 2 = 9.8 around 50, the 41st and the 60th of them, median 51.
  std::vector<double> samples;
  for (int i = 100; i >= 1; --i) samples.push_back(i);
  EXPECT_DOUBLE_EQ(median_half_width(samples), (60.0 - 41.0) / 2 / 51);
}

TEST(StoppingRule, MedianOfZeroNeverSettles) {
  EXPECT_TRUE(std::isinf(median_half_width(std::vector<double>(20, 0.0))));
}

TEST(StoppingRule, SettledMedianNeedsItsLeastTimeAndSamples) {
  StoppingRule rule;
  EXPECT_FALSE(enough_samples(rule, std::vector<double>(9, 200.0)));  // 1.8 s, too few
  EXPECT_FALSE(enough_samples(rule, std::vector<double>(50, 10.0)));  // 0.5 s, too short
  EXPECT_TRUE(enough_samples(rule, std::vector<double>(100, 10.0)));  // 1 s of equal steps
  EXPECT_FALSE(enough_samples(rule, alternating(100, 10.0, 20.0)));   // the median may be either
  EXPECT_TRUE(enough_samples(rule, alternating(100, 10.0, 10.15)));   // within one percent
  rule.half_width = 0.001;
  EXPECT_FALSE(enough_samples(rule, alternating(100, 10.0, 10.15)));
}

TEST(StoppingRule, TimeEndsWhatDoesNotSettle) {
  const StoppingRule rule;
  EXPECT_FALSE(enough_samples(rule, alternating(1998, 10.0, 20.0)));    // 29.97 s
  EXPECT_TRUE(enough_samples(rule, alternating(2000, 10.0, 20.0)));     // 30 s
  EXPECT_TRUE(enough_samples(rule, std::vector<double>(1, 30'000.0)));  // a single long step
}

}  // namespace
}  // namespace bench::training
