// Compute and exposed communication from made-up clock readings.
#include "training/devices/communication_spans.hpp"

#include <gtest/gtest.h>

namespace bench::training {
namespace {

// A step of 100: computes until 60, issues all-reduces at 20 and 60 that end at 50 and 90, waits
// for the second, and computes for the last 10.
const std::vector<ClockReading> kStep{{0, 0}, {100, 70}, {20, 20}, {50, 50}, {60, 60}, {90, 60}};
const std::vector<CollectiveSpan> kCollectives{{2, 3}, {4, 5}};

TEST(CommunicationSpans, TellWaitingFromHiding) {
  const SpanTimes times = times_of(kStep, kCollectives);
  EXPECT_EQ(times.compute_ns, 70);
  EXPECT_EQ(times.communication_ns, 60);
  EXPECT_EQ(times.exposed_ns, 30);
}

TEST(CommunicationSpans, CollectivesAtTheSameTimeCountOnce) {
  const std::vector<ClockReading> readings{{0, 0},   {100, 10}, {10, 10},
                                           {90, 10}, {20, 10},  {80, 10}};
  const SpanTimes times = times_of(readings, {{2, 3}, {4, 5}});
  EXPECT_EQ(times.communication_ns, 80);
  EXPECT_EQ(times.exposed_ns, 80);
}

TEST(CommunicationSpans, WithoutCollectivesNothingIsExposed) {
  const SpanTimes times = times_of({{0, 0}, {100, 80}}, {});
  EXPECT_EQ(times.compute_ns, 80);
  EXPECT_EQ(times.communication_ns, 0);
  EXPECT_EQ(times.exposed_ns, 0);
}

// Several threads may compute for the one that trains; its clock is never ahead of the wall's.
TEST(CommunicationSpans, ClocksThatDisagreeStayInBounds) {
  const SpanTimes times = times_of({{0, 0}, {100, 130}, {40, 60}, {50, 55}}, {{2, 3}});
  EXPECT_EQ(times.compute_ns, 40 + 0 + 50);
  EXPECT_EQ(times.exposed_ns, 10);
}

// Its callback ran when the step was over: the step does not last longer for it.
TEST(CommunicationSpans, AReadingTakenLateCountsToTheEndOfTheStep) {
  const ClockReading end{100, 70};
  const std::vector<ClockReading> readings{{0, 0}, end, {80, 60}, not_after({130, 90}, end)};
  const SpanTimes times = times_of(readings, {{2, 3}});
  EXPECT_EQ(times.compute_ns, 70);
  EXPECT_EQ(times.communication_ns, 20);
  EXPECT_EQ(times.exposed_ns, 10);
  EXPECT_EQ(not_after({99, 69}, end).wall_ns, 99);
}

TEST(UnitedLength, CountsOverlapsOnce) {
  EXPECT_DOUBLE_EQ(united_length({}), 0);
  EXPECT_DOUBLE_EQ(united_length({{5, 7}, {0, 2}, {1, 3}, {6, 6.5}}), 5);
}

TEST(SentBytes, AreThoseOfARing) {
  EXPECT_EQ(all_reduce_bytes(1000, 1), 0u);
  EXPECT_EQ(all_reduce_bytes(1000, 2), 1000u);
  EXPECT_EQ(all_reduce_bytes(1000, 4), 1500u);
  EXPECT_EQ(broadcast_bytes(1000, 4), 750u);
}

}  // namespace
}  // namespace bench::training
