#include "training/data/prefetcher.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

namespace bench::training {
namespace {

Batch numbered(std::int64_t index) { return {torch::full({1}, index), torch::Tensor()}; }

TEST(Prefetcher, KeepsTheOrderWhateverTheWorkersDo) {
  for (const int workers : {0, 1, 3, 8}) {
    Prefetcher prefetcher(
        [](std::int64_t index) {
          // Later batches are often quicker than earlier ones.
          std::this_thread::sleep_for(std::chrono::microseconds((index * 7919) % 300));
          return numbered(index);
        },
        workers, 2 * workers);
    for (std::int64_t i = 0; i < 100; ++i) {
      ASSERT_EQ(prefetcher.next().input.item<std::int64_t>(), i) << workers << " workers";
    }
  }
}

TEST(Prefetcher, WorksAheadButNotTooFar) {
  std::atomic<int> made{0};
  Prefetcher prefetcher(
      [&](std::int64_t index) {
        ++made;
        return numbered(index);
      },
      2, 3);
  const auto wait_for = [&](int count) {
    while (made < count) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // time to go too far
    return made.load();
  };
  EXPECT_EQ(wait_for(3), 3);
  prefetcher.next();
  EXPECT_EQ(wait_for(4), 4);
}

TEST(Prefetcher, ErrorsComeOutAtTheirBatch) {
  for (const int workers : {0, 2}) {
    Prefetcher prefetcher(
        [](std::int64_t index) {
          if (index == 3) throw std::runtime_error("batch 3 is unreadable");
          return numbered(index);
        },
        workers, 4);
    for (std::int64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(prefetcher.next().input.item<std::int64_t>(), i);
    }
    EXPECT_THROW(prefetcher.next(), std::runtime_error);
    EXPECT_EQ(prefetcher.next().input.item<std::int64_t>(), 4);
  }
}

}  // namespace
}  // namespace bench::training
