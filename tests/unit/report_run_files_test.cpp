// Files of a run: atomic, compressed the same every time, and readable again.
#include "bench/core/error.hpp"
#include "bench/core/strategy.hpp"
#include "bench/core/temporary_directory.hpp"
#include "report/run_files.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace bench::report {
namespace {

namespace fs = std::filesystem;

class RunFiles : public ::testing::Test {
 protected:
  static std::string read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  const TemporaryDirectory folder_;
  const fs::path directory_ = folder_.path();
};

CaseResult finished(Strategy strategy, double ms) {
  CaseResult result;
  result.work.scenario = "dp_vs_ddp";
  result.work.model.name = "mlp";
  result.work.strategy = strategy;
  result.work.gpus = {0, 1};
  result.work.batch = 64;
  result.simulated = true;
  result.samples.count = 1;
  result.metrics["step_ms_p50"] = ms;
  result.metrics["items_per_second"] = 64 / ms * 1000;
  return result;
}

profiling::Timeline small_timeline(std::int64_t step_ns) {
  profiling::Timeline timeline;
  timeline.simulated = true;
  timeline.devices = 2;
  timeline.step_ns = step_ns;
  timeline.names = {"", "aten::mm"};
  profiling::Interval interval;
  interval.name = 1;
  interval.end_ns = step_ns / 2;
  timeline.intervals = {interval};
  return timeline;
}

TEST_F(RunFiles, WritesAReportThatReadsBack) {
  RunResult run;
  run.context.simulated = true;
  run.cases = {finished(Strategy::data_parallel, 2), finished(Strategy::distributed, 1)};
  write_case_trace(directory_, run.cases[0], small_timeline(2'000'000));
  write_case_trace(directory_, run.cases[1], small_timeline(1'000'000));
  EXPECT_TRUE(fs::exists(directory_ / run.cases[0].trace_file)) << run.cases[0].trace_file;
  write_results(directory_, run);
  write_report_files(directory_, run);

  const ReportModel model = load_report({directory_.string()});
  ASSERT_EQ(model.runs.size(), 1u);
  EXPECT_EQ(model.runs[0].cases.size(), 2u);
  ASSERT_EQ(model.timelines.size(), 2u);
  EXPECT_EQ(model.timelines[0].title, "mlp, DP, 2 GPUs, batch 64");
  EXPECT_EQ(model.timelines[1].timeline.step_ns, 1'000'000);
  EXPECT_EQ(model.files,
            (std::vector<std::string>{"results.json", "timeline.json.gz", "report.html"}));
  EXPECT_NE(read(directory_ / "report.html").find("DDP is 2.00x faster"), std::string::npos);
}

TEST_F(RunFiles, ReplacesAFileWithoutLeavingAnother) {
  write_file_atomically(directory_ / "a", "one");
  write_file_atomically(directory_ / "a", "two");
  EXPECT_EQ(read(directory_ / "a"), "two");
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_), fs::directory_iterator{}), 1);
}

TEST_F(RunFiles, NamesTheFileThatCannotBeWritten) {
  try {
    write_file_atomically(directory_ / "missing" / "a", "x");
    FAIL() << "wrote into a directory that does not exist";
  } catch (const MachineError& e) {
    EXPECT_NE(std::string(e.what()).find("missing/a: cannot be written"), std::string::npos);
  }
}

TEST_F(RunFiles, CompressesTheSameBytesEveryTime) {
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += std::to_string(i * i);
  EXPECT_EQ(gzip(text), gzip(text));
  EXPECT_EQ(gunzip(gzip(text), "x"), text);
  EXPECT_EQ(gunzip(gzip(""), "x"), "");
  EXPECT_THROW(gunzip(gzip(text).substr(0, 100), "x"), UsageError);
  EXPECT_THROW(gunzip("plain text", "x"), UsageError);
}

TEST_F(RunFiles, NamesTheRunThatCannotBeRead) {
  EXPECT_THROW(load_report({(directory_ / "nothing").string()}), UsageError);
  write_file_atomically(directory_ / "results.json", "{}");
  EXPECT_THROW(load_report({directory_.string()}), UsageError);
}

}  // namespace
}  // namespace bench::report
