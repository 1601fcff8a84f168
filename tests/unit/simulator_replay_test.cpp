// The published steps that ship with the program, the edits that make a recording comparable with
// them, and the arithmetic of the summary.
#include "bench/core/strategy.hpp"
#include "bench/micro/layered_graph.hpp"
#include "simulator/graph_edit.hpp"
#include "simulator/graph_io.hpp"
#include "simulator/published_csv.hpp"
#include "simulator/ratio_replay.hpp"
#include "simulator/replay.hpp"
#include "simulator/simulate.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/simulator_random_graph.hpp"

namespace bench::simulator {
namespace {

TEST(PublishedSteps, EveryRowIsAskedOfAMachineThatHasTheGpus) {
  EXPECT_GE(published_steps().size(), 200U);
  for (const PublishedStep& step : published_steps()) {
    EXPECT_GE(load_machine(step.machine).gpu_count(), step.gpus) << step.group;
    EXPECT_GT(step.single_ms, 0) << step.group;
    EXPECT_GT(step.step_ms, 0) << step.group;
    EXPECT_EQ(step.case_of_row().batch, step.gpus * step.batch_per_gpu);
    EXPECT_EQ(step.case_of_single().gpus.size(), 1U);
    EXPECT_FALSE(step.source.empty());
  }
}

TEST(PublishedSteps, RowsThatContradictTheirNeighboursAreFewAndNamed) {
  const auto apart = std::count_if(published_steps().begin(), published_steps().end(),
                                   [](const PublishedStep& step) { return !step.apart.empty(); });
  EXPECT_GT(apart, 0);
  EXPECT_LT(apart * 5, static_cast<std::ptrdiff_t>(published_steps().size()));
}

TEST(Replay, AnchorsTheSingleDeviceStep) {
  PublishedStep step;
  step.machine = "dgx-a100";
  step.strategy = Strategy::distributed;
  step.gpus = 8;
  step.single_ms = 120;
  step.step_ms = 130;
  const OperationGraph single = layered_graph(900, 1);
  EXPECT_NEAR(replay(step, single, single).predicted_ms, 120, 0.01);
  const Replayed job = replay(step, single, layered_graph(900, 8));
  EXPECT_GT(job.predicted_ms, 120);
  EXPECT_LT(job.predicted_ms, 150);
}

TEST(Replay, SummaryLeavesOutWhatIsListedApart) {
  PublishedStep fine;
  fine.group = "a";
  fine.step_ms = 100;
  fine.single_ms = 50;
  PublishedStep odd = fine;
  odd.apart = "contradicts its neighbours";
  const auto summary = summarize({{&fine, 110, 2, 1}, {&fine, 80, 2, 1}, {&odd, 900, 2, 1}});
  ASSERT_EQ(summary.size(), 2U);
  EXPECT_EQ(summary[0].rows, 2);
  EXPECT_NEAR(summary[0].mean_error, 0.15, 1e-9);
  EXPECT_NEAR(summary[0].worst_error, 0.20, 1e-9);
  EXPECT_NEAR(summary[0].bias, -0.05, 1e-9);
  EXPECT_NEAR(summary[0].mean_unanchored_error, 0, 1e-9);
}

TEST(PublishedRatios, EverySideIsAMachineThatHasTheGpus) {
  EXPECT_GE(published_ratios().size(), 3U);
  for (const PublishedRatio& row : published_ratios()) {
    for (const RatioSide* side : {&row.side, &row.base}) {
      EXPECT_GE(load_machine(side->machine).gpu_count(), side->gpus) << row.group;
      EXPECT_EQ(row.case_of(*side).batch, side->gpus * row.batch_per_gpu);
    }
    EXPECT_GT(row.ratio, 0) << row.group;
    EXPECT_FALSE(row.source.empty());
    EXPECT_FALSE(row.question.empty());
  }
}

PublishedRatio eight_or_sixteen() {
  PublishedRatio row;
  row.side = {"2xdgx-a100", Strategy::distributed, 16};
  row.base = {"dgx-a100", Strategy::distributed, 8};
  row.ratio = 1.25;
  return row;
}

TEST(ReplayRatio, WithoutAPublishedStepIsFromDataSheets) {
  const PublishedRatio row = eight_or_sixteen();
  const OperationGraph graph = layered_graph(900, 8);
  const ReplayedRatio found = replay_ratio(row, graph, graph);
  EXPECT_FALSE(found.anchored.has_value());
  EXPECT_GT(found.unanchored, 1);
  EXPECT_DOUBLE_EQ(found.relative_error(), found.unanchored / 1.25 - 1);
}

// The slower the kernels, the less of the communication shows.
TEST(ReplayRatio, APublishedStepOfTheBaseAnchorsIt) {
  PublishedRatio row = eight_or_sixteen();
  const OperationGraph graph = layered_graph(900, 8);
  row.base_ms = 100;
  const double fast = replay_ratio(row, graph, graph).predicted();
  row.base_ms = 10'000;
  const ReplayedRatio slow = replay_ratio(row, graph, graph);
  EXPECT_NEAR(slow.predicted(), 1, 0.01);
  EXPECT_GT(fast, slow.predicted());
  row.side = row.base;
  EXPECT_NEAR(replay_ratio(row, graph, graph).predicted(), 1, 1e-6);
}

TEST(CsvRows, NameTheLineThatHasOtherColumns) {
  const EmbeddedText file{"runs.csv", "a,b\n1,\"x, y\"\n3\n"};
  try {
    csv_rows(file, 2);
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_STREQ(error.what(), "runs.csv:3: expected 2 columns, found 1");
  }
  EXPECT_EQ(csv_rows({"runs.csv", "a,b\n1,\"x, y\"\n"}, 2).at(0).at(1), "x, y");
}

TEST(GraphEdit, WithoutAPhaseNothingOfItIsLeft) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const OperationGraph graph = random_graph(seed);
    OperationGraph edited = without_phase(graph, Phase::backward);
    check_graph(edited, "edited");
    for (const Operation& op : edited.operations) EXPECT_NE(op.phase, Phase::backward);
    EXPECT_LT(edited.operations.size(), graph.operations.size());
  }
}

TEST(GraphEdit, PageableInputDelaysTheStepByItsCopies) {
  const OperationGraph graph = layered_graph(90, 1);
  const Machine machine = load_machine("v100-sxm2");
  const auto before = simulate(graph, machine, {}).timeline.step_ns;
  const OperationGraph edited = with_pageable_input(graph, 30'000'000);
  check_graph(edited, "edited");
  EXPECT_NEAR(static_cast<double>(simulate(edited, machine, {}).timeline.step_ns - before), 10e6,
              0.5e6);
}

}  // namespace
}  // namespace bench::simulator
