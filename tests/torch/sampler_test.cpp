#include "bench/core/error.hpp"

#include "training/data/distributed_sampler.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <set>

namespace bench::training {
namespace {

// The 64-bit integers of an oracle's file, one after the other.
class OracleFile {
 public:
  explicit OracleFile(const std::string& name) {
    const std::string path = std::string(BENCH_ORACLE_DIR) + "/" + name;
    std::ifstream stream(path, std::ios::binary);
    if (!stream) throw std::runtime_error(path + " is missing: run the test by ctest");
    const std::string bytes((std::istreambuf_iterator<char>(stream)), {});
    values_.resize(bytes.size() / sizeof(std::uint64_t));
    std::memcpy(values_.data(), bytes.data(), values_.size() * sizeof(std::uint64_t));
  }
  bool at_end() const { return next_ == values_.size(); }
  std::uint64_t take() { return values_.at(next_++); }
  std::vector<std::int64_t> take(std::size_t count) {
    std::vector<std::int64_t> taken;
    for (std::size_t i = 0; i < count; ++i) taken.push_back(static_cast<std::int64_t>(take()));
    return taken;
  }

 private:
  std::vector<std::uint64_t> values_;
  std::size_t next_ = 0;
};

TEST(DistributedSampler, EveryIndexIsPythons) {
  OracleFile oracle("samplers.bin");
  int rows = 0;
  while (!oracle.at_end()) {
    DistributedSamplerOptions options;
    options.length = static_cast<std::int64_t>(oracle.take());
    options.world_size = static_cast<int>(oracle.take());
    options.rank = static_cast<int>(oracle.take());
    options.seed = oracle.take();
    const std::uint64_t epoch = oracle.take();
    options.shuffle = oracle.take() != 0;
    options.drop_last = oracle.take() != 0;
    const auto expected = oracle.take(oracle.take());
    DistributedSampler sampler(options);
    sampler.set_epoch(epoch);
    ASSERT_EQ(sampler.size(), static_cast<std::int64_t>(expected.size()));
    ASSERT_EQ(sampler.indices(), expected)
        << "length " << options.length << " world size " << options.world_size << " rank "
        << options.rank << " seed " << options.seed << " epoch " << epoch << " shuffle "
        << options.shuffle << " drop_last " << options.drop_last;
    ++rows;
  }
  EXPECT_GT(rows, 20000);
}

TEST(DistributedSampler, RanksCoverTheDataSet) {
  std::multiset<std::int64_t> seen;
  for (int rank = 0; rank < 4; ++rank) {
    const DistributedSampler sampler({.length = 10, .world_size = 4, .rank = rank, .seed = 3});
    for (const std::int64_t index : sampler.indices()) seen.insert(index);
  }
  EXPECT_EQ(seen.size(), 12u);  // two samples are repeated
  for (std::int64_t index = 0; index < 10; ++index) EXPECT_GE(seen.count(index), 1u);
}

TEST(DistributedSampler, RefusesWhatPythonRefuses) {
  const auto refused = [](const DistributedSamplerOptions& options, std::uint64_t epoch) {
    try {
      DistributedSampler sampler(options);
      sampler.set_epoch(epoch);
      sampler.indices();
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refused({.length = 4, .world_size = 2, .rank = 2}, 0),
            "Invalid rank 2, rank should be in the interval [0, 1]");
  EXPECT_EQ(refused({.length = 4, .world_size = 2, .rank = -1}, 0),
            "Invalid rank -1, rank should be in the interval [0, 1]");
  EXPECT_EQ(refused({.length = 4, .seed = ~std::uint64_t{0}}, 1),
            "sampler: seed + epoch exceeds 64 bits");
  EXPECT_EQ(refused({.length = 4, .seed = ~std::uint64_t{0}}, 0), "accepted");
}

TEST(RandomSampler, EveryIndexIsPythonsOverSeveralPasses) {
  OracleFile oracle("random_sampler.bin");
  while (!oracle.at_end()) {
    const auto length = static_cast<std::int64_t>(oracle.take());
    RandomSampler sampler(length, oracle.take());
    for (std::uint64_t pass = 0; pass < 3; ++pass) {
      if (pass > 0) {
        ASSERT_EQ(static_cast<std::int64_t>(oracle.take()), length);
        oracle.take();
      }
      ASSERT_EQ(oracle.take(), pass);
      ASSERT_EQ(sampler.next_pass(), oracle.take(static_cast<std::size_t>(length)));
    }
  }
  EXPECT_THROW(RandomSampler(0, 1), UsageError);
}

TEST(SequentialSampler, CountsUp) {
  EXPECT_EQ(sequential_indices(3), (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_TRUE(sequential_indices(0).empty());
}

}  // namespace
}  // namespace bench::training
