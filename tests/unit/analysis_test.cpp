// The analysis of hand-made and random timelines: exact figures on the first, laws on the second.
#include "profiling/analysis.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace bench::profiling {
namespace {

using simulator::Phase;

Interval on_device(std::int32_t device, std::int32_t stream, IntervalKind kind, std::int64_t begin,
                   std::int64_t end) {
  Interval interval;
  interval.device = device;
  interval.stream = stream;
  interval.kind = kind;
  interval.begin_ns = begin;
  interval.end_ns = end;
  return interval;
}

// Compute 0-60, all-reduce 40-80, host copy 75-85, host thread busy 0-20 and 90-95, step 100.
Timeline one_device() {
  Timeline timeline;
  timeline.step_ns = 100;
  timeline.intervals = {on_device(0, 0, IntervalKind::compute, 0, 50),
                        on_device(0, 0, IntervalKind::compute, 30, 60),
                        on_device(0, 1, IntervalKind::collective, 40, 80),
                        on_device(0, 2, IntervalKind::copy, 75, 85),
                        on_device(-1, 0, IntervalKind::host, 0, 20),
                        on_device(-1, 0, IntervalKind::host, 90, 95)};
  timeline.intervals[2].bytes = 1000;
  return timeline;
}

TEST(Analysis, SplitsAStepOfOneDevice) {
  const StepMetrics metrics = analyze(one_device());
  ASSERT_EQ(metrics.devices.size(), 1u);
  const DeviceMetrics& device = metrics.devices[0];
  EXPECT_EQ(device.compute_ns, 60);
  EXPECT_EQ(device.communication_ns, 40);
  EXPECT_EQ(device.overlap_ns, 20);
  EXPECT_EQ(device.exposed_communication_ns, 20);
  EXPECT_EQ(device.copy_ns, 10);
  EXPECT_EQ(device.exposed_copy_ns, 5);
  EXPECT_EQ(device.idle_ns, 15);
  EXPECT_EQ(device.idle_host_ns, 5);
  EXPECT_DOUBLE_EQ(metrics.comm_overlap, 0.5);
  EXPECT_EQ(metrics.bytes_communicated, 1000u);
  const auto counters = timeline_counters(metrics);
  EXPECT_DOUBLE_EQ(counters.at("compute_busy"), 0.6);
  EXPECT_DOUBLE_EQ(counters.at("comm_exposed"), 0.2);
  EXPECT_DOUBLE_EQ(counters.at("idle_gpu0"), 0.15);
}

TEST(Analysis, CountsCopiesBetweenDevicesAsCommunication) {
  EXPECT_TRUE(is_communication(on_device(0, 0, IntervalKind::copy, 0, 1)));
  EXPECT_TRUE(is_communication(on_device(0, 1, IntervalKind::copy, 0, 1)));
  EXPECT_FALSE(is_communication(on_device(0, 2, IntervalKind::copy, 0, 1)));
  EXPECT_FALSE(is_communication(on_device(0, 3, IntervalKind::copy, 0, 1)));
  EXPECT_FALSE(is_communication(on_device(0, 0, IntervalKind::compute, 0, 1)));
  EXPECT_FALSE(is_communication(on_device(-1, 0, IntervalKind::copy, 0, 1)));
}

TEST(Analysis, ListsADeviceThatNeverRan) {
  Timeline timeline = one_device();
  timeline.devices = 2;
  const StepMetrics metrics = analyze(timeline);
  ASSERT_EQ(metrics.devices.size(), 2u);
  EXPECT_EQ(metrics.devices[1].idle_ns, 100);
  EXPECT_DOUBLE_EQ(metrics.compute_busy, 0.3);
}

TEST(Analysis, CollapsedRanksEqualTheSameRanksWrittenOut) {
  Timeline collapsed = one_device();
  collapsed.ranks = collapsed.devices = 3;
  collapsed.ranks_collapsed = true;
  Timeline full = collapsed;
  full.ranks_collapsed = false;
  for (std::int32_t rank = 1; rank < 3; ++rank) {
    for (Interval interval : one_device().intervals) {
      interval.rank = rank;
      if (interval.device >= 0) interval.device = rank;
      full.intervals.push_back(interval);
    }
  }
  const StepMetrics a = analyze(collapsed), b = analyze(full);
  ASSERT_EQ(a.devices.size(), 3u);
  EXPECT_EQ(timeline_counters(a), timeline_counters(b));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(a.devices[i].rank, b.devices[i].rank);
    EXPECT_EQ(a.devices[i].device, b.devices[i].device);
    EXPECT_EQ(a.devices[i].idle_host_ns, b.devices[i].idle_host_ns);
  }
}

TEST(Analysis, SumsPhasesOfTheHostAndOfTheDevice) {
  Timeline timeline = one_device();
  timeline.intervals[0].phase = Phase::forward;
  timeline.intervals[1].phase = Phase::backward;
  timeline.phases = {{0, Phase::forward, 0, 25}, {0, Phase::backward, 25, 60}};
  const StepMetrics metrics = analyze(timeline);
  EXPECT_EQ(metrics.phase_host_ns[static_cast<int>(Phase::forward)], 25);
  EXPECT_EQ(metrics.phase_host_ns[static_cast<int>(Phase::backward)], 35);
  EXPECT_DOUBLE_EQ(metrics.phase_device_ns[static_cast<int>(Phase::forward)], 50);
}

TEST(Analysis, EmptyTimelineHasNoFigures) {
  const StepMetrics metrics = analyze(Timeline{});
  EXPECT_EQ(metrics.compute_busy, 0);
  EXPECT_EQ(metrics.comm_overlap, 1);
  EXPECT_EQ(timeline_counters(metrics).count("idle_gpu0"), 0u);
}

Timeline random_timeline(std::mt19937& random) {
  Timeline timeline;
  timeline.step_ns = 1 + static_cast<std::int64_t>(random() % 1000);
  timeline.devices = timeline.ranks = 1 + static_cast<std::int32_t>(random() % 3);
  for (unsigned i = random() % 40; i > 0; --i) {
    Interval interval = on_device(
        static_cast<std::int32_t>(random() % 4) - 1, static_cast<std::int32_t>(random() % 4),
        static_cast<IntervalKind>(random() % 5), static_cast<std::int64_t>(random() % 1200) - 100,
        static_cast<std::int64_t>(random() % 1200));
    interval.device = std::min(interval.device, timeline.devices - 1);
    timeline.intervals.push_back(interval);
  }
  return timeline;
}

TEST(Analysis, PartsOfTheStepAddUpOnRandomTimelines) {
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    const Timeline timeline = random_timeline(random);
    const StepMetrics metrics = analyze(timeline);
    ASSERT_EQ(metrics.devices.size(), static_cast<std::size_t>(timeline.devices));
    for (const DeviceMetrics& d : metrics.devices) {
      EXPECT_EQ(d.compute_ns + d.exposed_communication_ns + d.exposed_copy_ns + d.idle_ns,
                timeline.step_ns);
      EXPECT_EQ(d.overlap_ns + d.exposed_communication_ns, d.communication_ns);
      EXPECT_LE(d.overlap_ns, std::min(d.compute_ns, d.communication_ns));
      EXPECT_LE(d.exposed_copy_ns, d.copy_ns);
      EXPECT_LE(d.idle_host_ns, d.idle_ns);
      EXPECT_GE(d.idle_ns, 0);
    }
    EXPECT_LE(metrics.comm_exposed + metrics.compute_busy, 1 + 1e-12);
    EXPECT_GE(metrics.comm_overlap, 0);
    EXPECT_LE(metrics.comm_overlap, 1);
  }
}

}  // namespace
}  // namespace bench::profiling
