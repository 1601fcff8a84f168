// Chrome traces: valid JSON, no overlap on any track, and reading back gives what was written.
#include "bench/core/error.hpp"

#include "profiling/analysis.hpp"
#include "profiling/chrome_trace.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>
#include <random>
#include <set>

namespace bench::profiling {
namespace {

using Json = nlohmann::json;

Interval interval(std::int32_t device, std::int32_t stream, IntervalKind kind, std::int64_t begin,
                  std::int64_t end, std::uint32_t name) {
  Interval result;
  result.device = device;
  result.stream = stream;
  result.kind = kind;
  result.phase = simulator::Phase::backward;
  result.name = name;
  result.begin_ns = begin;
  result.end_ns = end;
  return result;
}

TracedStep small_step() {
  Timeline timeline;
  timeline.simulated = true;
  timeline.devices = timeline.ranks = 2;
  timeline.ranks_collapsed = true;
  timeline.step_ns = 5000;
  timeline.names = {"", "aten::mm", "all \"reduce\"\n<b>"};
  timeline.host_threads = {"main"};
  timeline.intervals = {interval(-1, 0, IntervalKind::host, 0, 900, 1),
                        interval(0, 0, IntervalKind::compute, 1001, 4002, 1),
                        interval(0, 1, IntervalKind::collective, 2003, 4999, 2)};
  timeline.intervals[2].bytes = 4096;
  timeline.intervals[1].flops = 1.5e9;
  timeline.memory = {{0, 0, 512}, {0, 1001, 1024}};
  timeline.phases = {{0, simulator::Phase::forward, 0, 800}};
  return {"DDP resnet50", timeline};
}

Json events(const std::string& trace) { return Json::parse(trace).at("traceEvents"); }

TEST(ChromeTrace, WritesOneProcessPerRankAndOneTrackPerStream) {
  std::set<std::string> processes, tracks;
  for (const Json& event : events(chrome_trace_json({small_step()}))) {
    if (event["name"] == "process_name") processes.insert(event["args"]["name"]);
    if (event["name"] == "thread_name") tracks.insert(event["args"]["name"]);
  }
  EXPECT_EQ(processes, (std::set<std::string>{"DDP resnet50, rank 0 [SIMULATED]",
                                              "DDP resnet50, rank 1 [SIMULATED]"}));
  EXPECT_EQ(tracks,
            (std::set<std::string>{"phases", "host main", "GPU 0 compute", "GPU 0 communication",
                                   "GPU 1 compute", "GPU 1 communication"}));
}

TEST(ChromeTrace, KeepsNanosecondsAndEscapesNames) {
  bool found = false;
  for (const Json& event : events(chrome_trace_json({small_step()}))) {
    if (event["ph"] != "X" || event["cat"] != "collective") continue;
    found = true;
    EXPECT_EQ(event["name"], "all \"reduce\"\n<b>");
    EXPECT_DOUBLE_EQ(event["ts"], 2.003);
    EXPECT_DOUBLE_EQ(event["dur"], 2.996);
    EXPECT_EQ(event["args"]["bytes"], 4096);
  }
  EXPECT_TRUE(found);
}

TEST(ChromeTrace, SaysWhenOneRankStandsForMany) {
  TracedStep step = small_step();
  step.timeline.ranks = step.timeline.devices = 1024;
  const std::string trace = chrome_trace_json({step});
  EXPECT_NE(trace.find("rank 0 (stands for all 1024 ranks)"), std::string::npos);
  EXPECT_EQ(trace.find("rank 1 "), std::string::npos);
}

TEST(ChromeTrace, ReadsBackWhatItWrote) {
  TracedStep measured = small_step();
  measured.timeline.simulated = false;
  measured.timeline.ranks_collapsed = false;
  measured.title = "measured";
  const std::string trace = chrome_trace_json({small_step(), measured});
  const auto steps = parse_chrome_trace(trace, "memory");
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].title, "DDP resnet50");
  EXPECT_TRUE(steps[0].timeline.simulated);
  EXPECT_EQ(chrome_trace_json(steps), trace);
  EXPECT_EQ(timeline_counters(analyze(steps[0].timeline)),
            timeline_counters(analyze(small_step().timeline)));
}

TEST(ChromeTrace, RefusesForeignFiles) {
  EXPECT_THROW(parse_chrome_trace("{}", "x.json"), UsageError);
  EXPECT_THROW(parse_chrome_trace("not json", "x.json"), UsageError);
}

TEST(ChromeTrace, NeverOverlapsOnATrack) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    TracedStep step{"random", {}};
    for (unsigned i = random() % 30; i > 0; --i) {
      const auto begin = static_cast<std::int64_t>(random() % 1000);
      step.timeline.intervals.push_back(interval(
          static_cast<std::int32_t>(random() % 2) - 1, static_cast<std::int32_t>(random() % 3),
          IntervalKind::compute, begin, begin + static_cast<std::int64_t>(random() % 400), 0));
    }
    std::map<std::pair<int, int>, double> end_of_track;
    std::size_t drawn = 0;
    for (const Json& event : events(chrome_trace_json({step}))) {
      if (event["ph"] != "X") continue;
      ++drawn;
      double& end = end_of_track[{event["pid"], event["tid"]}];
      EXPECT_GE(event["ts"].get<double>(), end - 1e-9);
      end = event["ts"].get<double>() + event["dur"].get<double>();
    }
    const auto& all = step.timeline.intervals;
    EXPECT_EQ(drawn,
              static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [](const Interval& i) {
                return i.end_ns > i.begin_ns;
              })));
  }
}

}  // namespace
}  // namespace bench::profiling
