// Interval sets against an oracle that marks every nanosecond in a bitmap.
#include "profiling/interval_set.hpp"

#include <gtest/gtest.h>

#include <bitset>
#include <random>

namespace bench::profiling {
namespace {

constexpr int kHorizon = 64;
using Bits = std::bitset<kHorizon>;

Bits bits_of(const std::vector<Span>& spans) {
  Bits bits;
  for (const Span& span : spans) {
    for (auto t = span.begin_ns; t < span.end_ns; ++t) bits.set(static_cast<std::size_t>(t));
  }
  return bits;
}

std::vector<Span> random_spans(std::mt19937& random) {
  std::vector<Span> spans(random() % 7);
  for (Span& span : spans) {
    // Inverted and empty spans on purpose: the set must drop them.
    span.begin_ns = static_cast<std::int64_t>(random() % kHorizon);
    span.end_ns = static_cast<std::int64_t>(random() % kHorizon);
  }
  return spans;
}

void expect_same(const IntervalSet& set, const Bits& bits) {
  EXPECT_EQ(bits_of(set.spans()), bits);
  EXPECT_EQ(set.length_ns(), static_cast<std::int64_t>(bits.count()));
  for (std::size_t i = 1; i < set.spans().size(); ++i) {
    EXPECT_LT(set.spans()[i - 1].end_ns, set.spans()[i].begin_ns) << "spans touch or overlap";
  }
}

TEST(IntervalSet, AgreesWithABitmapOnRandomSets) {
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    const auto a = random_spans(random);
    const auto b = random_spans(random);
    const Bits x = bits_of(a), y = bits_of(b);
    const IntervalSet set_a(a), set_b(b);
    expect_same(set_a, x);
    expect_same(set_a.united(set_b), x | y);
    expect_same(set_a.intersected(set_b), x & y);
    expect_same(set_a.without(set_b), x & ~y);
    expect_same(set_a.clipped({10, 20}), x & bits_of({{10, 20}}));
  }
}

TEST(IntervalSet, JoinsSpansThatTouch) {
  EXPECT_EQ(IntervalSet({{5, 9}, {0, 5}}).spans(), (std::vector<Span>{{0, 9}}));
}

TEST(IntervalSet, HoldsHoursOfNanoseconds) {
  constexpr std::int64_t kDay = 86'400'000'000'000;
  EXPECT_EQ(IntervalSet({{0, kDay}}).without(IntervalSet({{1, 2}})).length_ns(), kDay - 1);
}

}  // namespace
}  // namespace bench::profiling
