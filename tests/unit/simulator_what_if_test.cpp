// Edits of a recorded step: they change what the option changes and nothing else.
#include "bench/micro/layered_graph.hpp"
#include "simulator/graph_io.hpp"
#include "simulator/simulate.hpp"
#include "simulator/what_if.hpp"

#include <gtest/gtest.h>

namespace bench::simulator {
namespace {

std::int64_t step_ns(const OperationGraph& graph, const char* machine) {
  return simulate(graph, load_machine(machine), {}).timeline.step_ns;
}

TEST(Autocast, IsFasterWhereTheGpuHasAHalfRateAndLeavesTheOptimizerAlone) {
  const OperationGraph graph = layered_graph(300, 8);
  const OperationGraph half = with_precision(graph, Precision::float16);
  EXPECT_LT(step_ns(half, "dgx-1-v100"), step_ns(graph, "dgx-1-v100"));
  for (std::size_t i = 0; i < graph.operations.size(); ++i) {
    const Operation& before = graph.operations[i];
    const Operation& after = half.operations[i];
    EXPECT_EQ(after.bytes_moved, before.bytes_moved) << "buckets stay float32";
    if (before.phase != Phase::optimizer) continue;
    EXPECT_EQ(after.dtype, DType::float32);
    EXPECT_EQ(after.bytes_read, before.bytes_read);
  }
  EXPECT_EQ(step_ns(with_precision(graph, Precision::float32), "dgx-1-v100"),
            step_ns(graph, "dgx-1-v100"));
}

// Tensors keep their size; a GPU without TF32 computes as before.
TEST(Tf32, IsFasterWhereTheGpuHasItAndChangesNothingElse) {
  OperationGraph graph = layered_graph(300, 8);
  EXPECT_EQ(step_ns(with_precision(graph, Precision::tf32), "dgx-a100"), step_ns(graph, "dgx-a100"))
      << "convolutions use it anyway";
  graph.names[1] = "aten::mm";
  const OperationGraph tf32 = with_precision(graph, Precision::tf32);
  EXPECT_LT(step_ns(tf32, "dgx-a100"), step_ns(graph, "dgx-a100"));
  EXPECT_EQ(step_ns(tf32, "dgx-1-v100"), step_ns(graph, "dgx-1-v100"));
  EXPECT_GT(step_ns(tf32, "dgx-a100"),
            step_ns(with_precision(graph, Precision::float16), "dgx-a100"));
  EXPECT_EQ(tf32.allocations.size(), graph.allocations.size());
  for (std::size_t i = 0; i < graph.operations.size(); ++i) {
    EXPECT_EQ(tf32.operations[i].bytes_read, graph.operations[i].bytes_read);
  }
}

TEST(BucketHook, HalvesTheBytesAndAddsTwoCasts) {
  const OperationGraph graph = layered_graph(300, 8);
  const OperationGraph hooked = with_bucket_hook(graph, BucketHook::fp16_compress);
  check_graph(hooked, "hooked");
  std::uint64_t before = 0;
  std::uint64_t after = 0;
  std::size_t buckets = 0;
  for (const Operation& op : graph.operations) {
    before += op.bytes_moved;
    buckets += op.kind == OpKind::collective ? 1 : 0;
  }
  for (const Operation& op : hooked.operations) after += op.bytes_moved;
  EXPECT_EQ(after * 2, before);
  EXPECT_EQ(hooked.operations.size(), graph.operations.size() + 2 * buckets);
}

TEST(BucketHook, PaysWhereTheLinkIsSlowAndNotWhereNothingIsExposed) {
  const OperationGraph graph = layered_graph(300, 8);
  const OperationGraph hooked = with_bucket_hook(graph, BucketHook::fp16_compress);
  EXPECT_LT(step_ns(hooked, "pcie-8x4090"), step_ns(graph, "pcie-8x4090"));
  EXPECT_GE(step_ns(hooked, "dgx-a100"), step_ns(graph, "dgx-a100") * 99 / 100);
}

TEST(WhatIf, NamesRoundTrip) {
  for (const auto precision :
       {Precision::float32, Precision::tf32, Precision::float16, Precision::bfloat16}) {
    EXPECT_EQ(parse_precision(precision_name(precision)), precision);
  }
  for (const auto hook : {BucketHook::none, BucketHook::fp16_compress, BucketHook::bf16_compress}) {
    EXPECT_EQ(parse_bucket_hook(bucket_hook_name(hook)), hook);
  }
  EXPECT_FALSE(parse_precision("fp8"));
}

}  // namespace
}  // namespace bench::simulator
