// The table of names of a file gives every place of a name in order, however many names share
// slots.
#include "diagnose/model/name_index.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace bench::diagnose {
namespace {

std::vector<std::uint32_t> places(const NameIndex& index, const HashedName& name) {
  const auto found = index.of(name);
  return {found.begin(), found.end()};
}

TEST(NameIndex, GivesPlacesInOrder) {
  NameIndex index;
  index.add("rank", 3);
  index.add("loss", 4);
  index.add("rank", 9);
  index.finish();
  EXPECT_EQ(places(index, "rank"), (std::vector<std::uint32_t>{3, 9}));
  EXPECT_EQ(places(index, "loss"), std::vector<std::uint32_t>{4});
  EXPECT_TRUE(index.of("world").empty());
}

TEST(NameIndex, HasNothingWhereNothingWasAdded) {
  NameIndex index;
  EXPECT_TRUE(index.of("rank").empty());
  index.finish();
  EXPECT_TRUE(index.of("rank").empty());
}

TEST(NameIndex, TellsManyNamesApart) {
  constexpr std::uint32_t kNames = 3000;
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < kNames; ++i) names.push_back("name" + std::to_string(i));
  NameIndex index;
  for (std::uint32_t round = 0; round < 2; ++round)
    for (std::uint32_t i = 0; i < kNames; ++i) index.add(names[i], round * kNames + i);
  index.finish();
  for (std::uint32_t i = 0; i < kNames; ++i)
    ASSERT_EQ(places(index, names[i]), (std::vector<std::uint32_t>{i, kNames + i})) << names[i];
  EXPECT_TRUE(index.of("name3000").empty());
}

}  // namespace
}  // namespace bench::diagnose
