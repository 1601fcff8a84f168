// What a run answers: which comparison leads, which sentences follow, which hints fire.
#include "bench/core/relative_metrics.hpp"
#include "bench/core/strategy.hpp"
#include "bench/core/units.hpp"
#include "report/answer.hpp"
#include "report/case_tables.hpp"
#include "report/charts/axis.hpp"
#include "report/charts/focus.hpp"
#include "report/charts/svg.hpp"
#include "report/charts/timeline_strip.hpp"
#include "report/headline.hpp"
#include "report/hints.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace bench::report {
namespace {

CaseResult finished(const char* model, Strategy strategy, int gpus, std::int64_t batch, double ms) {
  CaseResult result;
  result.work.model.name = model;
  result.work.strategy = strategy;
  result.work.gpus.clear();
  for (int gpu = 0; gpu < gpus; ++gpu) {
    result.work.gpus.push_back(gpu);
    result.memory.push_back({gpu, kGiB, {{"activations", kGiB}}});
  }
  result.work.batch = batch;
  result.work.device_memory_bytes = 16 * kGiB;
  result.metrics = {{"step_ms_p50", ms},
                    {"items_per_second", static_cast<double>(batch) / ms * 1000},
                    {"primary_imbalance", 1}};
  return result;
}

CaseResult out_of_memory(const char* model, Strategy strategy, int gpus, std::int64_t batch) {
  CaseResult result = finished(model, strategy, gpus, batch, 1);
  result.status = CaseStatus::skipped;
  result.out_of_memory = true;
  result.metrics.clear();
  return result;
}

RunResult pair_run(double dp_ms, double ddp_ms) {
  RunResult run;
  run.cases = {finished("resnet50", Strategy::data_parallel, 4, 64, dp_ms),
               finished("resnet50", Strategy::distributed, 4, 64, ddp_ms)};
  return run;
}

bool any_contains(const std::vector<std::string>& sentences, const std::string& text) {
  return std::any_of(sentences.begin(), sentences.end(),
                     [&](const std::string& s) { return s.find(text) != std::string::npos; });
}

TEST(Headline, NamesTheFasterStrategyWhicheverItIs) {
  EXPECT_TRUE(any_contains(headline_sentences(pair_run(200, 100)), "DDP is 2.00x faster than DP"));
  EXPECT_TRUE(any_contains(headline_sentences(pair_run(100, 150)), "DP is 1.50x faster than DDP"));
  EXPECT_TRUE(any_contains(headline_sentences(pair_run(100, 100)), "take the same time"));
}

TEST(Headline, PrefersMoreGpusThenTheModelListedLastThenTheLargerBatch) {
  RunResult run;
  for (const char* model : {"resnet18", "resnet50"}) {
    for (const int gpus : {4, 2}) {
      for (const std::int64_t batch : {128, 64}) {
        run.cases.push_back(finished(model, Strategy::data_parallel, gpus, batch, 10));
        run.cases.push_back(finished(model, Strategy::distributed, gpus, batch, 10));
      }
    }
  }
  const auto best = headline(run);
  ASSERT_TRUE(best);
  EXPECT_EQ(best->model, "resnet50");
  EXPECT_EQ(best->gpus, 4);
  EXPECT_EQ(best->batch, 128);
  EXPECT_EQ(headline(run, "resnet18")->model, "resnet18");
}

TEST(Headline, IgnoresCasesWithoutFiguresAndReferences) {
  RunResult run = pair_run(200, 100);
  run.cases[0].status = CaseStatus::wrong;
  EXPECT_FALSE(headline(run));
  run = pair_run(200, 100);
  run.cases[0].work.reference_only = true;
  EXPECT_FALSE(headline(run));
}

TEST(Headline, SaysWhatFits) {
  RunResult run = pair_run(200, 100);
  EXPECT_TRUE(any_contains(headline_sentences(run), "Every batch tried fits, up to 64 on 4 GPUs"));
  run.cases.push_back(out_of_memory("resnet50", Strategy::data_parallel, 4, 128));
  EXPECT_TRUE(any_contains(headline_sentences(run), "64 under DP, at least 64 under DDP"));
}

TEST(Headline, TrustsASearchForTheLargestBatch) {
  RunResult run = pair_run(200, 100);
  run.cases[0].facts["next_batch"] = "65 does not fit: out of memory on GPU 0";
  run.cases[1].facts["next_batch"] = "the search ends here; a larger batch may fit";
  const auto largest = largest_batches(run, "resnet50", 4);
  ASSERT_EQ(largest.size(), 2u);
  EXPECT_TRUE(largest[0].larger_did_not_fit);
  EXPECT_FALSE(largest[1].larger_did_not_fit);
  EXPECT_EQ(headline_sentences(run),
            std::vector<std::string>{"The largest batch that fits (resnet50, 4 GPUs): 64 under DP, "
                                     "at least 64 under DDP."});
}

TEST(Headline, AnswersSweepsOfOneStrategy) {
  RunResult run;
  for (const double ms : {20.0, 10.0}) {
    run.cases.push_back(finished("mlp", Strategy::distributed, 2, 64, ms));
    run.cases.back().work.tags = {{"bucket_mb", ms > 15 ? "1" : "25"}};
  }
  const auto sentences = headline_sentences(run);
  EXPECT_TRUE(any_contains(sentences, "Fastest: mlp on 2 GPUs (DDP, batch 64, bucket_mb:25)"));
  EXPECT_TRUE(any_contains(sentences, "2.00x the throughput of the slowest"));
  run.cases[0] = run.cases[1];
  EXPECT_EQ(headline_sentences(run),
            std::vector<std::string>{
                "All 2 cases of mlp on 2 GPUs reach the same throughput: 6400 samples/s."});
}

TEST(Headline, SaysWhenNothingFinished) {
  EXPECT_TRUE(any_contains(headline_sentences(RunResult{}), "No case finished"));
}

TEST(Hints, AreSilentWithoutNews) {
  RunResult run = pair_run(200, 100);
  for (CaseResult& r : run.cases) r.simulated = true;
  EXPECT_TRUE(hints(run).empty());
}

TEST(Hints, TellWhatLimitsTheLargestBatch) {
  RunResult run = pair_run(200, 100);
  run.cases[0].facts["batch_limit"] = "activations hold 97 % of GPU 0";
  run.cases[0].facts["next_batch"] = "65 does not fit: out of memory: tried to allocate 2 GiB";
  run.cases[1].facts["next_batch"] = "the search ends here; a larger batch may fit";
  EXPECT_TRUE(any_contains(
      hints(run),
      "At the largest batch: resnet50 DP: activations hold 97 % of GPU 0; 65 does not fit: out of "
      "memory: tried to allocate 2 GiB. resnet50 DDP: the search ends here; a larger batch may "
      "fit."));
}

TEST(Hints, SayWhatRealDevicesDoNotTell) {
  EXPECT_TRUE(any_contains(hints(pair_run(200, 100)), "Not measured on real GPUs"));
}

TEST(Hints, NameWhatThePrimaryGpuHoldsMore) {
  RunResult run = pair_run(200, 100);
  DeviceMemory& primary = run.cases[0].memory[0];
  primary.by_category["gathered_outputs"] = 2 * kGiB;
  primary.peak_bytes = 3 * kGiB;
  run.cases[0].metrics["primary_imbalance"] = 3;
  EXPECT_TRUE(any_contains(hints(run), "2.00 GiB of gathered outputs"));
}

TEST(Hints, NameGpusThatDoNotPay) {
  RunResult run = pair_run(200, 100);
  run.cases.push_back(finished("resnet50", Strategy::single, 1, 64, 150));
  add_relative_metrics(run.cases);
  EXPECT_TRUE(any_contains(hints(run), "1 case with several GPUs is slower than one GPU"));
}

TEST(Hints, NameExposedCommunicationAndFullGpus) {
  RunResult run = pair_run(200, 100);
  run.cases[1].metrics["comm_exposed"] = 0.4;
  run.cases[1].metrics["comm_overlap"] = 0.5;
  run.cases[1].memory[0].peak_bytes = 15 * kGiB;
  EXPECT_TRUE(any_contains(hints(run), "waits for communication in 40 % of its step"));
  EXPECT_TRUE(any_contains(hints(run), "GPU 0 is 94 % full"));
}

TEST(Focus, TellsStrongFromWeakScaling) {
  RunResult strong;
  for (const int gpus : {2, 4}) {
    strong.cases.push_back(finished("mlp", Strategy::distributed, gpus, 64, 10));
  }
  EXPECT_FALSE(focus_of(strong, "mlp").per_gpu);
  EXPECT_EQ(focus_of(strong, "mlp").batch_text(), "global batch 64");
  RunResult weak;
  for (const int gpus : {1, 2, 4}) {
    weak.cases.push_back(finished("mlp", Strategy::distributed, gpus, 32 * gpus, 10));
  }
  EXPECT_TRUE(focus_of(weak, "mlp").per_gpu);
  EXPECT_EQ(focus_of(weak, "mlp").batch_text(), "batch 32 per GPU");
}

TEST(Tables, JoinEqualReasonsAndPutWrongResultsFirst) {
  RunResult run;
  run.cases = {out_of_memory("mlp", Strategy::single, 1, 1),
               out_of_memory("mlp", Strategy::single, 1, 2),
               out_of_memory("mlp", Strategy::single, 1, 3)};
  for (CaseResult& result : run.cases) result.message = "too large";
  run.cases[2].status = CaseStatus::wrong;
  const auto all = troubles(run);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].status, CaseStatus::wrong);
  EXPECT_EQ(all[1].cases.size(), 2u);
  EXPECT_EQ(trouble_cases_text(all[1], 1), "mlp, single, 1 GPU, batch 1; and 1 more");
}

TEST(Tables, DropTheLeastImportantColumnsFirst) {
  TextTable table{{{"name", false, 9}, {"b", true, 1}, {"c", true, 5}}, {{"x", "1", "2"}}};
  table.fit(9);
  ASSERT_EQ(table.columns.size(), 2u);
  EXPECT_EQ(table.columns[1].title, "c");
  EXPECT_EQ(table.lines(0)[1], "x     2");
  EXPECT_EQ(display_width("\xC3\xA9t\xC3\xA9"), 3u);
}

TEST(Charts, ChooseRoundTicks) {
  EXPECT_EQ(nice_ticks(82, 5), (std::vector<double>{0, 20, 40, 60, 80, 100}));
  EXPECT_EQ(nice_ticks(0, 5), (std::vector<double>{0, 1}));
  EXPECT_EQ(binary_ticks(7, 5), (std::vector<double>{0, 2, 4, 6, 8}));
}

TEST(Charts, DrawEverySymmetricRank) {
  profiling::TracedStep step{"DDP", {}};
  step.timeline.ranks = step.timeline.devices = 4;
  step.timeline.ranks_collapsed = true;
  step.timeline.step_ns = 100;
  step.timeline.intervals.resize(1);
  step.timeline.intervals[0].end_ns = 50;
  const std::string four = draw_timelines({step});
  EXPECT_NE(four.find("GPU 3"), std::string::npos);
  EXPECT_EQ(four.find("drawn"), std::string::npos);
  step.timeline.ranks = step.timeline.devices = 1024;
  EXPECT_NE(draw_timelines({step}).find("8 of 1024 GPUs drawn"), std::string::npos);
  EXPECT_EQ(draw_timelines({}), "");
}

TEST(Charts, EscapeEverything) {
  EXPECT_EQ(escape_html("<a href=\"x\">'&'</a>"),
            "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;");
  Svg svg(10, 10, "\"><script>");
  svg.text(0, 0, "<script>", "label");
  svg.rect({0, 0, 1, 1}, "b", "<script>");
  EXPECT_EQ(svg.take().find("<script>"), std::string::npos);
}

}  // namespace
}  // namespace bench::report
