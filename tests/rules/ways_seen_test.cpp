// The steps of a walk are told apart, the few of most walks and the many of some.
#include "diagnose/model/ways_seen.hpp"

#include <gtest/gtest.h>

namespace bench::diagnose {
namespace {

TEST(WaysSeen, TakesEachWayOnce) {
  const Module module("train.py", "train", "x = f(y)\n");
  const Call* const call = &module.calls().front();
  WaysSeen seen;
  EXPECT_TRUE(seen.insert({{&module, 1}, -1, nullptr}));
  EXPECT_FALSE(seen.insert({{&module, 1}, -1, nullptr}));
  EXPECT_TRUE(seen.insert({{&module, 1}, 0, nullptr}));  // an element of it
  EXPECT_TRUE(seen.insert({{&module, 1}, -1, call}));
  EXPECT_FALSE(seen.insert({{&module, 1}, 0, nullptr}));
}

TEST(WaysSeen, KeepsAllOfLongWalks) {
  const Module module("train.py", "train", "x = 1\n");
  constexpr NodeId kWays = 5000;
  WaysSeen seen;
  for (NodeId node = 0; node < kWays; ++node)
    ASSERT_TRUE(seen.insert({{&module, node}, -1, nullptr})) << node;
  for (NodeId node = 0; node < kWays; ++node)
    ASSERT_FALSE(seen.insert({{&module, node}, -1, nullptr})) << node;
}

}  // namespace
}  // namespace bench::diagnose
