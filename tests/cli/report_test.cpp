// Stored runs rendered again: bench report and bench trace over a run of the mock worker.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/run_bench.hpp"

namespace bench::cli_test {
namespace {

// One run that every test of this file reads.
const Workspace& stored_run() {
  static const Workspace workspace;
  static const Answer answer = workspace.bench({"--scenario", "dp_vs_ddp", "--model", "mlp",
                                                "--gpus", "0,1", "--batch", "32", "--out", "run"});
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  return workspace;
}

TEST(Report, ShowsWhatTheRunShowed) {
  const Workspace& here = stored_run();
  const Answer answer = here.bench({"report", "run"});
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_TRUE(answer.out.starts_with("SIMULATED on ")) << answer.out;
  EXPECT_NE(answer.out.find("DDP is "), std::string::npos);
}

TEST(Report, EndingsChooseTheFormat) {
  const Workspace& here = stored_run();
  for (const auto& [file, text] :
       std::vector<std::pair<std::string, std::string>>{{"again.html", "<!doctype html>"},
                                                        {"again.md", "| strategy |"},
                                                        {"again.csv", "name,scenario,model"},
                                                        {"again.json", "\"benchmarks\""},
                                                        {"again.txt", "SIMULATED"}}) {
    const Answer answer = here.bench({"report", "run", "--out", file});
    EXPECT_EQ(answer.exit_code, 0) << answer.err;
    EXPECT_EQ(answer.out, "");
    EXPECT_NE(here.read(file).find(text), std::string::npos) << file;
  }
  EXPECT_EQ(here.read("again.html"), here.read("run/report.html"));
  EXPECT_EQ(here.read("again.json"), here.read("run/results.json"));
}

TEST(Report, RefusesWhatItCannotRead) {
  const Workspace& here = stored_run();
  here.write("broken.json", "{");
  for (const auto& [arguments, text] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"report"}, "expected one or more runs"},
           {{"report", "nowhere"}, "nowhere: cannot be read"},
           {{"report", "broken.json"}, "broken.json: not a results.json"},
           {{"report", "run", "--out", "x.pdf"}, "expected a file ending in .html"},
           {{"report", "run", "--format", "htm"}, "html"},
           {{"trace", "run", "--case", "no such case"}, "no timeline of a case"},
           {{"trace"}, "expected one run"}}) {
    const Answer answer = here.bench(arguments);
    EXPECT_EQ(answer.exit_code, 2) << answer.out;
    EXPECT_NE(answer.err.find(text), std::string::npos) << answer.err;
  }
  EXPECT_EQ(here.bench({"report", "run", "--out", "missing/x.html"}).exit_code, 3);
}

TEST(Trace, HoldsTheHeadlinePairOrTheCasesAskedFor) {
  const Workspace& here = stored_run();
  EXPECT_EQ(here.bench({"trace", "run", "--out", "pair.json"}).exit_code, 0);
  const auto pair = nlohmann::json::parse(here.read("pair.json"));
  EXPECT_EQ(pair["benchSteps"].size(), 2u);
  EXPECT_EQ(pair["otherData"]["simulated"], "true");
  EXPECT_GT(pair["traceEvents"].size(), 10u);
  const Answer single = here.bench({"trace", "run", "--case", "strategy:single"});
  EXPECT_EQ(single.exit_code, 0) << single.err;
  const auto trace = nlohmann::json::parse(single.out);
  for (const auto& step : trace["benchSteps"]) {
    EXPECT_NE(step["title"].get<std::string>().find("single"), std::string::npos);
  }
}

}  // namespace
}  // namespace bench::cli_test
