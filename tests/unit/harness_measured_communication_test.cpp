// Shares of a measured step from the samples of its ranks.
#include "bench/core/communication_sample.hpp"
#include "bench/harness/measured_communication.hpp"

#include <gtest/gtest.h>

namespace bench {
namespace {

StepSample sample(int step, int rank, double wall, double compute, double communication,
                  double exposed) {
  StepSample s;
  s.step = step;
  s.rank = rank;
  s.wall_ms = wall;
  s.phase_ms = {{"forward", 1}};
  CommunicationSample times{compute, communication, exposed, {}};
  if (communication > 0) times.all_reduce_ms = {communication};
  add_communication(times, s);
  return s;
}

// Two ranks, two steps of 10 and 20 ms.
std::vector<JobOutcome> two_ranks() {
  JobOutcome outcome;
  outcome.reports.resize(2);
  outcome.reports[0].samples = {sample(0, 0, 10, 6, 4, 2), sample(1, 0, 20, 12, 8, 4)};
  outcome.reports[1].samples = {sample(0, 1, 9, 3, 4, 4), sample(1, 1, 20, 6, 8, 8)};
  outcome.reports[0].counters = {{"bucket_bytes_0", 1048576.0}};
  return {outcome};
}

CaseResult measured() {
  CaseResult result;
  result.work.gpus = {4, 5};
  result.samples.p50_ms = 15;
  return result;
}

TEST(MeasuredCommunication, SharesAreOfTheStepsTogether) {
  CaseResult result = measured();
  add_measured_communication(result, two_ranks());
  EXPECT_DOUBLE_EQ(result.metric("compute_busy"), (18.0 + 9.0) / 60);
  EXPECT_DOUBLE_EQ(result.metric("comm_exposed"), (6.0 + 12.0) / 60);
  EXPECT_DOUBLE_EQ(result.metric("comm_overlap"), 1 - 18.0 / 24);
  EXPECT_DOUBLE_EQ(result.metric("idle_gpu4"), 1 - (18.0 + 6.0) / 30);
  EXPECT_DOUBLE_EQ(result.metric("idle_gpu5"), 1 - (9.0 + 12.0) / 30);
  EXPECT_EQ(result.facts.at("all_reduces"), "1.00 MiB in 6 ms");
}

TEST(MeasuredCommunication, PartsOfABreakdownAddUpToTheStep) {
  CaseResult result = measured();
  add_measured_communication(result, two_ranks());
  ASSERT_EQ(result.breakdown.size(), 2u);
  for (const DeviceBreakdown& parts : result.breakdown) {
    EXPECT_DOUBLE_EQ(parts.compute_ms + parts.exposed_communication_ms + parts.idle_ms, 15);
  }
}

TEST(MeasuredCommunication, TravelsBesideThePhases) {
  const StepSample s = sample(0, 0, 10, 6, 4, 2);
  EXPECT_EQ(phases_of(s), (std::map<std::string, double>{{"forward", 1}}));
  const auto times = communication_of(s);
  ASSERT_TRUE(times);
  EXPECT_EQ(times->compute_ms, 6);
  EXPECT_EQ(times->communication_ms, 4);
  EXPECT_EQ(times->exposed_ms, 2);
  EXPECT_EQ(times->all_reduce_ms, std::vector<double>{4});
}

// CUDA events tell what is exposed and nothing about a busy stream.
TEST(MeasuredCommunication, WhatIsNotKnownStaysAbsent) {
  auto repetitions = two_ranks();
  for (RankReport& report : repetitions[0].reports) {
    for (StepSample& s : report.samples) {
      CommunicationSample times = *communication_of(s);
      times.compute_ms.reset();
      s.phase_ms = phases_of(s);
      add_communication(times, s);
    }
  }
  CaseResult result = measured();
  add_measured_communication(result, repetitions);
  EXPECT_DOUBLE_EQ(result.metric("comm_exposed"), 18.0 / 60);
  EXPECT_FALSE(result.metrics.contains("compute_busy"));
  EXPECT_FALSE(result.metrics.contains("idle_gpu4"));
  EXPECT_TRUE(result.breakdown.empty());
}

TEST(MeasuredCommunication, SaysNothingOfStepsThatWereNotTimed) {
  auto repetitions = two_ranks();
  repetitions[0].reports[1].samples[1].phase_ms = {{"forward", 1}};
  CaseResult result = measured();
  add_measured_communication(result, repetitions);
  EXPECT_TRUE(result.metrics.empty());
}

TEST(MeasuredCommunication, WithoutCollectivesAllIsHidden) {
  JobOutcome outcome;
  outcome.reports.resize(1);
  outcome.reports[0].samples = {sample(0, 0, 10, 8, 0, 0)};
  CaseResult result = measured();
  result.work.gpus = {0};
  add_measured_communication(result, {outcome});
  EXPECT_DOUBLE_EQ(result.metric("comm_overlap"), 1);
  EXPECT_DOUBLE_EQ(result.metric("comm_exposed"), 0);
  EXPECT_DOUBLE_EQ(result.metric("compute_busy"), 0.8);
}

}  // namespace
}  // namespace bench
