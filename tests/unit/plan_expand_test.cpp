// Settings and devices become cases: which combinations exist, in which order, with which skips.
#include "bench/core/error.hpp"
#include "bench/core/strategy.hpp"
#include "bench/plan/batch_rules.hpp"
#include "bench/plan/expand.hpp"
#include "bench/plan/scenario_file.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace bench {
namespace {

Devices four_virtual() {
  Devices devices;
  devices.kind = DeviceKind::vgpu;
  devices.count = 4;
  devices.machine = "4xv100-sxm2";
  devices.memory_bytes = 16ull << 30;
  return devices;
}

Settings settings_of(const std::string& text) { return parse_scenario(text, "t.toml", "t"); }

Plan plan_of(const std::string& text, const std::vector<int>& gpus = {0, 1, 2, 3}) {
  return make_plan(settings_of(text), four_virtual(), gpus);
}

std::vector<std::string> names(const Plan& plan) {
  std::vector<std::string> list;
  for (const PlannedCase& planned : plan.cases) {
    list.push_back(planned.work.name() + (planned.work.reference_only ? " (reference)" : "") +
                   (planned.skip ? " (skip)" : ""));
  }
  return list;
}

TEST(Expand, SweepsGpuCountsAndAddsWhatScalingNeeds) {
  const Plan plan = plan_of(R"(
[sweep]
models = ["mlp"]
strategies = ["single", "dp", "ddp"]
batches = [64]
gpu_counts = "powers"
)");
  EXPECT_EQ(names(plan), (std::vector<std::string>{
                             "t/model:mlp/strategy:single/gpus:1/batch:64",
                             "t/model:mlp/strategy:single/gpus:1/batch:32 (reference)",
                             "t/model:mlp/strategy:data_parallel/gpus:2/batch:64",
                             "t/model:mlp/strategy:distributed/gpus:2/batch:64",
                             "t/model:mlp/strategy:single/gpus:1/batch:16 (reference)",
                             "t/model:mlp/strategy:data_parallel/gpus:4/batch:64",
                             "t/model:mlp/strategy:distributed/gpus:4/batch:64",
                         }));
}

TEST(Expand, TheDefaultScenarioIsComplete) {
  const Plan plan = make_plan(load_scenario("dp_vs_ddp"), four_virtual(), {0, 1, 2, 3});
  const auto wanted = std::count_if(plan.cases.begin(), plan.cases.end(), [](const auto& planned) {
    return !planned.work.reference_only;
  });
  // 3 models x 3 batches x (single + 2 strategies on 2 and on 4 GPUs)
  EXPECT_EQ(wanted, 45);
  for (const auto& planned : plan.cases) EXPECT_FALSE(planned.skip);
}

TEST(Expand, CasesCarryTheDevices) {
  const Plan plan =
      plan_of("[sweep]\nmodels=[\"mlp\"]\nstrategies=[\"ddp\"]\nbatches=[6]\n", {3, 1});
  const Case& work = plan.cases.back().work;
  EXPECT_EQ(work.gpus, (std::vector<int>{3, 1}));
  EXPECT_EQ(work.machine, "4xv100-sxm2");
  EXPECT_EQ(work.device_memory_bytes, 16ull << 30);
  EXPECT_EQ(plan.cases[0].work.gpus, std::vector<int>{3});  // the reference runs on the primary
}

TEST(Expand, OneGpuRunsEveryStrategyOnIt) {
  const Plan plan = plan_of(
      "[sweep]\nmodels=[\"mlp\"]\nstrategies=[\"ddp\"]\nbatches=[6]\ngpu_counts=\"powers\"\n", {0});
  EXPECT_EQ(plan.cases.back().work.name(), "t/model:mlp/strategy:distributed/gpus:1/batch:6");
}

TEST(Expand, InASweepABatchThatCannotBeCutIsASkip) {
  const Plan plan = plan_of("[sweep]\nmodels=[\"mlp\"]\nstrategies=[\"ddp\"]\nbatches=[2, 6, 8]\n");
  EXPECT_EQ(names(plan), (std::vector<std::string>{
                             "t/model:mlp/strategy:distributed/gpus:4/batch:2 (skip)",
                             "t/model:mlp/strategy:distributed/gpus:4/batch:6 (skip)",
                             "t/model:mlp/strategy:single/gpus:1/batch:2 (reference)",
                             "t/model:mlp/strategy:single/gpus:1/batch:8 (reference)",
                             "t/model:mlp/strategy:distributed/gpus:4/batch:8",
                         }));
  EXPECT_EQ(plan.cases[0].skip->reason, "batch 2 on 4 GPUs leaves rank 2 without samples");
  EXPECT_EQ(plan.cases[1].skip->reason,
            "batch 6 on 4 GPUs does not divide evenly; the next ones that do are 4 and 8");
}

TEST(Expand, AskedForDirectlyItIsAnError) {
  EXPECT_THROW(plan_of("[sweep]\nmodels=[\"mlp\"]\nstrategies=[\"ddp\"]\nbatches=[2]\n"),
               UsageError);
  // On fewer GPUs than were selected it is a point of the sweep over GPU counts.
  EXPECT_NO_THROW(
      plan_of("[sweep]\nmodels=[\"mlp\"]\nstrategies=[\"ddp\"]\nbatches=[4]\ngpu_counts=[3, 4]\n"));
}

TEST(Expand, CountsBeyondTheSelectionAreSkips) {
  const Plan plan =
      plan_of("[sweep]\nmodels=[\"mlp\"]\nstrategies=[\"ddp\"]\nbatches=[8]\ngpu_counts=[4, 8]\n");
  EXPECT_EQ(plan.cases.back().work.name(), "t/model:mlp/strategy:distributed/gpus:8/batch:8");
  EXPECT_EQ(plan.cases.back().skip->reason, "needs 8 GPUs, --gpus selects 4");
}

TEST(Expand, DdpOptionsSweepDistributedOnly) {
  const Plan plan = plan_of(R"(
[sweep]
models = ["mlp"]
strategies = ["dp", "ddp"]
batches_per_gpu = [2]
[ddp]
bucket_cap_mb = [1, 2.5]
static_graph = true
)");
  EXPECT_EQ(names(plan),
            (std::vector<std::string>{
                "t/model:mlp/strategy:single/gpus:1/batch:2 (reference)",
                "t/model:mlp/strategy:single/gpus:1/batch:8 (reference)",
                "t/model:mlp/strategy:data_parallel/gpus:4/batch:8",
                "t/model:mlp/strategy:distributed/gpus:4/batch:8/bucket_mb:1/static_graph:true",
                "t/model:mlp/strategy:distributed/gpus:4/batch:8/bucket_mb:2.5/static_graph:true",
            }));
  EXPECT_EQ(plan.cases.back().work.ddp.bucket_cap_mb, 2.5);
  EXPECT_TRUE(plan.cases.back().work.ddp.static_graph);
}

TEST(Expand, NoSyncVariesOnlyWhereThereIsSomethingToAccumulate) {
  const Plan plan = make_plan(load_scenario("accumulation"), four_virtual(), {0, 1, 2, 3});
  int with_tag = 0;
  for (const auto& planned : plan.cases) {
    const bool tagged = planned.work.name().find("no_sync:") != std::string::npos;
    EXPECT_EQ(tagged,
              planned.work.strategy == Strategy::distributed && planned.work.accumulation > 1);
    with_tag += tagged ? 1 : 0;
  }
  EXPECT_EQ(with_tag, 6);
}

TEST(Expand, NamesAreUnique) {
  for (const char* scenario : {"dp_vs_ddp", "batch_size_sweep", "gpu_count_sweep", "max_batch",
                               "bucket_size", "accumulation"}) {
    auto list = names(make_plan(load_scenario(scenario), four_virtual(), {0, 1, 2, 3}));
    std::sort(list.begin(), list.end());
    EXPECT_EQ(std::adjacent_find(list.begin(), list.end()), list.end()) << scenario;
  }
}

TEST(Expand, SearchesCarryTheirRange) {
  const Plan plan = make_plan(load_scenario("max_batch"), four_virtual(), {0, 1, 2, 3});
  ASSERT_EQ(plan.cases.size(), 3u);
  EXPECT_EQ(plan.cases[0].search->highest, 4096);
  EXPECT_EQ(plan.cases[2].search->lowest, 4);
  EXPECT_EQ(plan.cases[2].search->highest, 4 * 4096);
  EXPECT_EQ(plan.cases[2].search->multiple, 4);
}

TEST(Expand, DataParallelNeedsGpus) {
  Devices cpu;
  cpu.kind = DeviceKind::cpu;
  cpu.count = 64;
  const Plan plan = make_plan(
      settings_of("[sweep]\nmodels=[\"mlp\"]\nstrategies=[\"dp\",\"ddp\"]\nbatches=[4]\n"), cpu,
      {0, 1});
  EXPECT_TRUE(plan.cases[0].skip);
  EXPECT_FALSE(plan.cases.back().skip);
  EXPECT_EQ(plan.cases.back().work.execute, Execute::numeric);
}

TEST(Expand, UnknownModelsListTheNearest) {
  try {
    plan_of("[sweep]\nmodels=[\"resnet51\"]\nstrategies=[\"ddp\"]\nbatches=[4]\n");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean resnet50"), std::string::npos);
  }
}

TEST(BatchRules, ChunksAreTorchChunk) {
  Case work;
  work.strategy = Strategy::data_parallel;
  work.gpus = {0, 1, 2, 3};
  work.batch = 5;  // 2 + 2 + 1 + nothing
  EXPECT_EQ(*batch_problem(work),
            "batch 5 on 4 GPUs is cut into chunks of 2 and leaves GPU 3 without samples");
  work.batch = 7;  // 2 + 2 + 2 + 1
  EXPECT_FALSE(batch_problem(work));
  work.accumulation = 2;
  EXPECT_EQ(*batch_problem(work), "batch 7 does not divide into 2 equal micro-batches");
}

}  // namespace
}  // namespace bench
