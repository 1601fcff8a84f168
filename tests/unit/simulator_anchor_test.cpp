// An anchored simulation gives back the measured step, by scaling what bounds it.
#include "bench/core/error.hpp"
#include "bench/micro/layered_graph.hpp"
#include "simulator/anchor.hpp"

#include <gtest/gtest.h>

namespace bench::simulator {
namespace {

constexpr int kOperations = 300;

double anchored_step_ns(const OperationGraph& graph, const Anchor& anchor) {
  SimulationOptions options;
  options.kernel_scale = anchor.kernel_scale;
  options.host_scale = anchor.host_scale;
  return static_cast<double>(simulate(graph, load_machine("v100-sxm2"), options).timeline.step_ns);
}

OperationGraph tiny_kernels() {
  OperationGraph graph = layered_graph(kOperations, 1);
  for (Operation& op : graph.operations) op.flops = op.bytes_read = op.bytes_written = 1;
  return graph;
}

TEST(Anchor, ScalesKernelsWhereTheGpuBounds) {
  const OperationGraph graph = layered_graph(kOperations, 1);
  for (const double measured : {30e6, 100e6, 900e6}) {
    const Anchor anchor = anchor_to_single(graph, load_machine("v100-sxm2"), {}, measured);
    EXPECT_FALSE(anchor.host_bound);
    EXPECT_EQ(anchor.host_scale, 1);
    EXPECT_NEAR(anchored_step_ns(graph, anchor), measured, 1000);
  }
}

TEST(Anchor, ScalesHostCostsWhereTheHostBounds) {
  const OperationGraph graph = tiny_kernels();
  const Anchor anchor = anchor_to_single(graph, load_machine("v100-sxm2"), {}, 20e6);
  EXPECT_TRUE(anchor.host_bound);
  EXPECT_EQ(anchor.kernel_scale, 1);
  EXPECT_GT(anchor.host_scale, 1);
  EXPECT_NEAR(anchored_step_ns(graph, anchor), 20e6, 1000);
}

TEST(Anchor, ScalesBothWhereTheMeasurementBeatsBoth) {
  const OperationGraph graph = layered_graph(kOperations, 1);
  const Anchor anchor = anchor_to_single(graph, load_machine("v100-sxm2"), {}, 0.5e6);
  EXPECT_EQ(anchor.kernel_scale, anchor.host_scale);
  EXPECT_LT(anchor.kernel_scale, 1);
  EXPECT_NEAR(anchored_step_ns(graph, anchor), 0.5e6, 1000);
}

TEST(Anchor, RefusesWhatNoScaleReaches) {
  const OperationGraph graph = layered_graph(kOperations, 1);
  EXPECT_THROW(anchor_to_single(graph, load_machine("v100-sxm2"), {}, 1), UsageError);
}

}  // namespace
}  // namespace bench::simulator
