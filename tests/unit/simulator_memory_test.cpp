// The caching allocator's model: what it rounds, splits, keeps and gives back; and the memory of a
// device over a step.
#include "simulator/caching_heap.hpp"
#include "simulator/device_memory.hpp"
#include "simulator/nccl_model.hpp"

#include <gtest/gtest.h>

#include <random>

namespace bench::simulator {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

TEST(CachingHeap, ReservesSegmentsByTheSizeOfTheRequest) {
  CachingHeap heap(1000 * kMiB);
  (void)heap.take(1);
  EXPECT_EQ(heap.allocated(), 512U);
  EXPECT_EQ(heap.reserved(), 2 * kMiB);
  (void)heap.take(kMiB);
  EXPECT_EQ(heap.reserved(), 2 * kMiB) << "the rest of the small segment serves it";
  (void)heap.take(kMiB + 1);
  EXPECT_EQ(heap.reserved(), 22 * kMiB);
  (void)heap.take(18 * kMiB);
  EXPECT_EQ(heap.reserved(), 22 * kMiB) << "cut from the segment of 20 MiB";
  (void)heap.take(11 * kMiB + 1);
  EXPECT_EQ(heap.reserved(), 34 * kMiB);
}

TEST(CachingHeap, KeepsAndJoinsWhatIsFreed) {
  CachingHeap heap(1000 * kMiB);
  const auto a = heap.take(5 * kMiB);
  const auto b = heap.take(5 * kMiB);
  const auto c = heap.take(10 * kMiB - 512);
  EXPECT_EQ(heap.reserved(), 20 * kMiB);
  heap.give_back(*a);
  heap.give_back(*c);
  heap.give_back(*b);
  EXPECT_EQ(heap.allocated(), 0U);
  EXPECT_EQ(heap.reserved(), 20 * kMiB);
  (void)heap.take(20 * kMiB);
  EXPECT_EQ(heap.reserved(), 20 * kMiB) << "the joined block serves it whole";
}

TEST(CachingHeap, LargeBlocksAreNotSplitForARestOfAMebibyte) {
  CachingHeap heap(1000 * kMiB);
  const auto block = heap.take(32 * kMiB);
  heap.give_back(*block);
  (void)heap.take(31 * kMiB);
  (void)heap.take(kMiB + 512);
  EXPECT_EQ(heap.reserved(), 52 * kMiB);
}

TEST(CachingHeap, GivesWholeSegmentsBackBeforeItRefuses) {
  CachingHeap heap(64 * kMiB);
  const auto a = heap.take(40 * kMiB);
  heap.give_back(*a);
  EXPECT_TRUE(heap.take(60 * kMiB).has_value());
  EXPECT_EQ(heap.reserved(), 60 * kMiB);
  EXPECT_EQ(heap.peak_reserved(), 60 * kMiB);
  EXPECT_FALSE(heap.take(5 * kMiB).has_value());
}

TEST(CachingHeap, NeverLosesAByteInRandomUse) {
  std::mt19937_64 random(3);
  CachingHeap heap(1ULL << 40);
  std::vector<CachingHeap::Block> held;
  std::uint64_t bytes = 0;
  std::vector<std::uint64_t> sizes;
  for (int i = 0; i < 20000; ++i) {
    if (held.empty() || random() % 5 < 3) {
      const std::uint64_t size = (1 + random() % 1000) * (random() % 3 == 0 ? 65536 : 512);
      held.push_back(*heap.take(size));
      sizes.push_back(size);
      bytes += size;
    } else {
      const std::size_t at = random() % held.size();
      heap.give_back(held[at]);
      bytes -= sizes[at];
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
      sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(at));
    }
    ASSERT_EQ(heap.allocated(), bytes);
    ASSERT_GE(heap.reserved(), bytes);
  }
}

// Parameters that stay, an activation that goes, gradients that the step leaves behind.
OperationGraph small_step() {
  OperationGraph graph;
  graph.names.emplace_back("aten::addmm");
  graph.host_threads = {"main", "backward:0"};
  for (std::uint32_t thread : {0U, 1U}) {
    Operation op;
    op.name = 1;
    op.device = 0;
    op.host_thread = thread;
    graph.operations.push_back(op);
  }
  graph.allocations = {{0, MemoryCategory::parameters, 100 * kMiB, kNone, kNone},
                       {0, MemoryCategory::activations, 300 * kMiB, 0, 1},
                       {0, MemoryCategory::gradients, 100 * kMiB, 1, kNone}};
  return graph;
}

TEST(DeviceMemory, CountsWorkspacesOfBothThreadsAndWhatStaysCached) {
  const DeviceMemory memory = device_memory(small_step(), 0, 8.0);
  EXPECT_EQ(memory.workspace_bytes, 2U * 8519680);
  EXPECT_FALSE(memory.refused.has_value());
  // The gradients reuse the activation's block, which the next step's activation then lacks: what
  // remains of it is too small, so that another segment is needed.
  EXPECT_GE(memory.reserved_bytes, 400 * kMiB + memory.workspace_bytes);
  EXPECT_EQ(device_memory(small_step(), 0, 9.0).workspace_bytes, 2 * 32 * kMiB);
}

TEST(DeviceMemory, NamesWhatIsRefusedFirst) {
  EXPECT_EQ(device_memory(small_step(), 0, 8.0, 50 * kMiB).refused, MemoryCategory::parameters);
  EXPECT_EQ(device_memory(small_step(), 0, 8.0, 200 * kMiB).refused, MemoryCategory::activations);
  EXPECT_EQ(device_memory(small_step(), 0, 8.0, 10 * kMiB).refused, MemoryCategory::other)
      << "not even the workspaces";
  EXPECT_FALSE(device_memory(small_step(), 0, 8.0, 600 * kMiB).refused.has_value());
}

TEST(NcclBuffers, GrowWithChannelsAndVanishForOneRank) {
  NcclTopology one{1, 1, 240, 0, 8.0, true, false};
  EXPECT_EQ(nccl_buffer_bytes(one), 0);
  NcclTopology eight = one;
  eight.ranks = 8;
  NcclTopology pcie = eight;
  pcie.nvlink = false;
  pcie.ring_gb_per_s = 12;
  EXPECT_GT(nccl_buffer_bytes(eight), nccl_buffer_bytes(pcie));
  EXPECT_GT(nccl_buffer_bytes(pcie), 0);
}

}  // namespace
}  // namespace bench::simulator
