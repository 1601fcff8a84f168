#include "bench/core/relative_metrics.hpp"
#include "bench/core/strategy.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace bench {
namespace {

CaseResult finished(Strategy strategy, std::vector<int> gpus, std::int64_t batch,
                    double items_per_second) {
  CaseResult result;
  result.work.model.name = "resnet18";
  result.work.strategy = strategy;
  result.work.gpus = std::move(gpus);
  result.work.batch = batch;
  result.metrics["items_per_second"] = items_per_second;
  return result;
}

TEST(RelativeMetrics, ComparesWithSingleAtTheSameBatchAndAtTheSameBatchPerGpu) {
  std::vector<CaseResult> cases{finished(Strategy::single, {0}, 32, 100),
                                finished(Strategy::single, {0}, 64, 120),
                                finished(Strategy::distributed, {0, 1}, 64, 180)};
  add_relative_metrics(cases);
  EXPECT_DOUBLE_EQ(cases[2].metric("scaling_efficiency"), 180.0 / 200);
  EXPECT_DOUBLE_EQ(cases[2].metric("speedup_vs_single"), 1.5);
  EXPECT_DOUBLE_EQ(cases[0].metric("scaling_efficiency"), 1);
  EXPECT_DOUBLE_EQ(cases[0].metric("speedup_vs_single"), 1);
}

TEST(RelativeMetrics, FallsBackWhereTheBatchDoesNotFitOnOneGpu) {
  std::vector<CaseResult> cases{finished(Strategy::single, {0}, 32, 100),
                                finished(Strategy::data_parallel, {0, 1}, 64, 150)};
  add_relative_metrics(cases);
  EXPECT_DOUBLE_EQ(cases[1].metric("speedup_vs_single"), 1.5);
}

TEST(RelativeMetrics, GivesNoFigureWithoutAReference) {
  std::vector<CaseResult> cases{finished(Strategy::single, {0}, 32, 100),
                                finished(Strategy::distributed, {0, 1}, 64, 180)};
  cases[0].status = CaseStatus::skipped;
  add_relative_metrics(cases);
  EXPECT_TRUE(std::isnan(cases[1].metric("scaling_efficiency")));
  EXPECT_TRUE(std::isnan(cases[1].metric("speedup_vs_single")));
}

TEST(RelativeMetrics, NeverMixesModels) {
  std::vector<CaseResult> cases{finished(Strategy::single, {0}, 32, 100),
                                finished(Strategy::distributed, {0, 1}, 64, 180)};
  cases[0].work.model.name = "resnet50";
  add_relative_metrics(cases);
  EXPECT_TRUE(std::isnan(cases[1].metric("scaling_efficiency")));
}

}  // namespace
}  // namespace bench
