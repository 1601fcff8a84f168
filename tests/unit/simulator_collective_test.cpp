// Collectives: interpolation of measured curves at sizes that were left out, NCCL's choices, and
// what a topology looks like to NCCL.
#include "bench/core/error.hpp"
#include "simulator/collective_check.hpp"
#include "simulator/collective_time.hpp"
#include "simulator/nvlink_rings.hpp"
#include "simulator/topology.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace bench::simulator {
namespace {

std::vector<int> first(int count) {
  std::vector<int> gpus(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) gpus[static_cast<std::size_t>(i)] = i;
  return gpus;
}

TEST(CollectiveCheck, UnseenSizesOfEveryPublishedSweepStayWithinSevenPercent) {
  int sweeps = 0;
  for (const CollectiveCheck& check : check_collectives()) {
    std::printf("%s, %s: mean %.1f %%, worst %.1f %%, buckets %.1f %%\n", check.curve.c_str(),
                check.method.c_str(), 100 * check.mean_error, 100 * check.worst_error,
                100 * check.bucket_error);
    EXPECT_EQ(check.points, check.method.starts_with("interpolated") ? 18 : 20);
    if (!check.method.starts_with("interpolated")) continue;
    ++sweeps;
    EXPECT_LT(check.mean_error, 0.07) << check.curve;
    EXPECT_GE(check.worst_error, check.mean_error);
  }
  EXPECT_EQ(sweeps, 3);
}

TEST(CollectiveCurve, MeasuredPointsAreReturnedOnTheMeasuredSystem) {
  const Machine machine = load_machine("a100x8-4hdr");
  const CollectiveModel model(machine, Topology(machine, first(8)).job());
  EXPECT_NEAR(model.ns(CollectiveKind::all_reduce, 8388608), 133.5e3, 1);
  EXPECT_EQ(model.estimate(CollectiveKind::all_reduce, 1e6).provenance, Provenance::measured);
  Machine four = machine;
  four.node_count = 4;
  const CollectiveModel nodes(four, Topology(four, first(32)).job());
  EXPECT_NEAR(nodes.ns(CollectiveKind::all_reduce, 33554432), 661.04e3, 1);
}

TEST(CollectiveCurve, OtherSystemsAreScaled) {
  const Machine machine = load_machine("dgx-a100");
  const CollectiveModel four(machine, Topology(machine, first(4)).job());
  const CollectiveEstimate estimate = four.estimate(CollectiveKind::all_reduce, 1 << 25);
  EXPECT_EQ(estimate.provenance, Provenance::scaled);
  EXPECT_LT(estimate.ns, 424.0e3);  // eight GPUs move 1.75 payloads, four only 1.5
  EXPECT_GT(estimate.ns, 0.7 * 424.0e3);
}

TEST(CollectiveCurve, ContinuesBeyondItsEnds) {
  const auto curve = load_machine("hgx-h200").collectives[0].points;
  EXPECT_GT(interpolate_curve(curve, 4), 10e3);
  const auto& [bytes, ns] = curve.back();
  EXPECT_NEAR(interpolate_curve(curve, bytes * 16), ns * 16, 0.05 * ns * 16);
}

TEST(NcclModel, ChoosesLatencyForSmallAndBandwidthForLarge) {
  const Machine machine = load_machine("dgx-a100");
  const NcclTopology job = Topology(machine, first(8)).job();
  EXPECT_EQ(nccl_choice(CollectiveKind::all_reduce, 1e3, job).protocol, NcclProtocol::ll);
  EXPECT_EQ(nccl_choice(CollectiveKind::all_reduce, 1e9, job).protocol, NcclProtocol::simple);
  const Machine pcie = load_machine("8xv100-pcie");
  for (double bytes = 1e3; bytes < 1e10; bytes *= 10) {
    const auto choice =
        nccl_choice(CollectiveKind::all_reduce, bytes, Topology(pcie, first(8)).job());
    EXPECT_NE(choice.protocol, NcclProtocol::ll128) << "LL128 needs NVLink";
  }
  const Machine hopper = load_machine("hgx-h200");
  EXPECT_EQ(
      nccl_choice(CollectiveKind::all_reduce, 1e9, Topology(hopper, first(8)).job()).algorithm,
      NcclAlgorithm::nvls);
  EXPECT_EQ(
      nccl_choice(CollectiveKind::all_reduce, 1e9, Topology(hopper, first(4)).job()).algorithm,
      NcclAlgorithm::ring);
}

// The same table of NCCL's tuning.cc says which collective may use which algorithm.
TEST(NcclModel, NvlsIsOfferedToAllReduceAndAllGatherOnly) {
  const auto offered = [](CollectiveKind kind, const Machine& machine, int gpus) {
    const auto choices = nccl_choices(kind, 1e8, Topology(machine, first(gpus)).job());
    return std::any_of(choices.begin(), choices.end(), [](const NcclChoice& choice) {
      return choice.algorithm == NcclAlgorithm::nvls;
    });
  };
  const Machine node = load_machine("hgx-h200");
  const Machine nodes = load_machine("2xhgx-h200");
  EXPECT_TRUE(offered(CollectiveKind::all_reduce, node, 8));
  EXPECT_TRUE(offered(CollectiveKind::all_reduce, nodes, 16));
  EXPECT_TRUE(offered(CollectiveKind::all_gather, node, 8));
  EXPECT_FALSE(offered(CollectiveKind::all_gather, nodes, 16)) << "needs a network that reduces";
  EXPECT_FALSE(offered(CollectiveKind::all_gather, load_machine("dgx-a100"), 8));
  EXPECT_FALSE(offered(CollectiveKind::broadcast, node, 8));
  EXPECT_FALSE(offered(CollectiveKind::reduce, node, 8));
}

// 450 GB/s of NVLink to each of eight H200, as NCCL counts them: 20.6 GB/s for each of 18.
TEST(NcclModel, NvlsGatherTakesTheWholePayloadThroughOneLink) {
  const auto choices = nccl_choices(CollectiveKind::all_gather, 1e8,
                                    Topology(load_machine("hgx-h200"), first(8)).job());
  const NcclChoice& nvls = choices.back();
  ASSERT_EQ(nvls.algorithm, NcclAlgorithm::nvls);
  EXPECT_NEAR(nvls.gb_per_s, 18 * 20.6 * 7 / 8 / 8, 1e-6);
  EXPECT_DOUBLE_EQ(nvls.latency_ns, 25e3);
}

TEST(NvlinkRings, CubeMeshOffersSixThroughAllAndOneBetweenSingleLinks) {
  const NodeSpec node = load_machine("dgx-1-v100").node;
  EXPECT_EQ(count_nvlink_rings(node.nvlink_pairs, first(8)), 6);
  EXPECT_EQ(count_nvlink_rings(node.nvlink_pairs, {0, 1}), 1);
  EXPECT_EQ(count_nvlink_rings(node.nvlink_pairs, {0, 3}), 2);
  EXPECT_EQ(count_nvlink_rings(node.nvlink_pairs, first(4)), 4);
  EXPECT_EQ(count_nvlink_rings(node.nvlink_pairs, {0, 5}), 0);
}

TEST(Topology, WhatNcclSees) {
  const Machine dgx = load_machine("dgx-1-v100");
  EXPECT_DOUBLE_EQ(Topology(dgx, {0, 1}).job().ring_gb_per_s, 20);
  EXPECT_DOUBLE_EQ(Topology(dgx, {0, 3}).job().ring_gb_per_s, 40);
  EXPECT_DOUBLE_EQ(Topology(dgx, first(8)).job().ring_gb_per_s, 120);
  const NcclTopology far = Topology(dgx, {0, 5}).job();
  EXPECT_FALSE(far.nvlink);
  EXPECT_LT(far.ring_gb_per_s, 12);
  const Machine two = load_machine("2xdgx-1-v100");
  const NcclTopology nodes = Topology(two, first(16)).job();
  EXPECT_EQ(nodes.nodes, 2);
  EXPECT_DOUBLE_EQ(nodes.network_gb_per_s, 48);
  EXPECT_DOUBLE_EQ(Topology(two, {0, 8}).job().network_gb_per_s, 12);
}

TEST(Topology, PathsNameTheirLinks) {
  const Machine dgx = load_machine("dgx-1-v100");
  const Topology topology(dgx, {0, 3, 5});
  auto names = [&](std::int32_t from, std::int32_t to) {
    std::string text;
    for (const std::uint32_t link : topology.path(from, to)) {
      text += topology.links()[link].name + "; ";
    }
    return text;
  };
  EXPECT_EQ(names(0, 1), "node 0 nvlink 0-3; ");
  EXPECT_NE(names(0, 2).find("socket 0-1"), std::string::npos);
  EXPECT_EQ(names(-1, 0), "node 0 pcie switch 0 down; node 0 pcie gpu 0 down; ");
  EXPECT_EQ(names(1, 1), "");
  const Machine staged = load_machine("pcie-8x4090");
  const Topology box(staged, {0, 1});
  bool host_staged = false;
  for (const std::uint32_t link : box.path(0, 1)) {
    host_staged = host_staged || box.links()[link].name.find("staging") != std::string::npos;
  }
  EXPECT_TRUE(host_staged);
}

TEST(Topology, RefusesGpusThatAreNotThere) {
  const Machine machine = load_machine("4xv100-sxm2");
  EXPECT_THROW(Topology(machine, {0, 4}), UsageError);
  EXPECT_THROW(Topology(machine, {0, 0}), UsageError);
}

}  // namespace
}  // namespace bench::simulator
