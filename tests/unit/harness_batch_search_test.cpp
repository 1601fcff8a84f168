#include "bench/harness/batch_search.hpp"

#include <gtest/gtest.h>

#include <set>

namespace bench {
namespace {

struct Machine {
  std::int64_t limit;
  int rounds = 0;
  std::multiset<std::int64_t> asked;

  std::size_t operator()(const std::vector<std::int64_t>& batches) {
    ++rounds;
    std::size_t fitting = 0;
    for (const std::int64_t batch : batches) {
      asked.insert(batch);
      if (batch > limit) break;
      ++fitting;
    }
    return fitting;
  }
};

BatchBounds search(Machine& machine, BatchSearch search, int probes) {
  return largest_fitting_batch(search, probes,
                               [&](const auto& batches) { return machine(batches); });
}

TEST(BatchSearch, FindsTheLimitExactly) {
  for (const int probes : {1, 7}) {
    for (std::int64_t limit = 4; limit <= 1000; limit += 3) {
      Machine machine{limit};
      const BatchBounds found = search(machine, {4, 1000, 4}, probes);
      EXPECT_EQ(found.fits, limit / 4 * 4) << limit;
      EXPECT_EQ(found.does_not_fit, limit / 4 * 4 + 4 > 1000 ? 0 : limit / 4 * 4 + 4) << limit;
      for (const auto batch : machine.asked) {
        EXPECT_EQ(batch % 4, 0);
        EXPECT_EQ(machine.asked.count(batch), 1u) << "asked twice: " << batch;
      }
    }
  }
}

TEST(BatchSearch, EndsAtTheBounds) {
  Machine none{3};
  EXPECT_EQ(search(none, {4, 64, 4}, 7).fits, 0);
  Machine all{1000};
  EXPECT_EQ(search(all, {4, 64, 4}, 7).fits, 64);
  EXPECT_EQ(search(all, {4, 64, 4}, 7).does_not_fit, 0);
  Machine one{5};
  EXPECT_EQ(search(one, {5, 5, 1}, 7).fits, 5);
}

TEST(BatchSearch, SeveralProbesSaveRounds) {
  Machine many{4321};
  Machine single{4321};
  EXPECT_EQ(search(many, {4, 65536, 4}, 7).fits, 4320);
  EXPECT_EQ(search(single, {4, 65536, 4}, 1).fits, 4320);
  EXPECT_LE(many.rounds, 5);
  EXPECT_GT(single.rounds, 2 * many.rounds);
}

}  // namespace
}  // namespace bench
