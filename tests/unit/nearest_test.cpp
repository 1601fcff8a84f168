#include "bench/core/nearest.hpp"

#include "bench/core/model_catalog.hpp"

#include <gtest/gtest.h>

#include <set>

namespace bench {
namespace {

using Names = std::vector<std::string>;

TEST(EditDistance, CountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("ddp", "dpd"), 1u);
  EXPECT_EQ(edit_distance("ResNet18", "resnet18"), 0u);
}

TEST(NearestNames, ClosestFirstTiesInGivenOrder) {
  const Names known = {"mlp", "resnet18", "resnet50", "resnet152"};
  EXPECT_EQ(nearest_names("resnet51", known), (Names{"resnet50", "resnet18", "resnet152"}));
  EXPECT_EQ(nearest_names("mpl", known), (Names{"mlp"}));
  EXPECT_EQ(nearest_names("resnet51", known, 1), (Names{"resnet50"}));
}

TEST(NearestNames, AcceptsPrefixesAndRejectsChance) {
  const Names known = {"data_parallel", "distributed", "single"};
  EXPECT_EQ(nearest_names("dist", known), (Names{"distributed"}));
  EXPECT_TRUE(nearest_names("zz", known).empty());
  EXPECT_TRUE(nearest_names("", known).empty());
}

TEST(UnknownName, OneSentenceForEveryError) {
  const Names known = {"mlp", "resnet18", "resnet50"};
  EXPECT_EQ(unknown_name_message("model", "resnet5O", known),
            "unknown model 'resnet5O'; did you mean resnet50 or resnet18? known: mlp, resnet18, "
            "resnet50");
  EXPECT_EQ(unknown_name_message("model", "xyzzy!", known),
            "unknown model 'xyzzy!'; known: mlp, resnet18, resnet50");
  EXPECT_EQ(unknown_name_message("rule", "x", Names{}), "unknown rule 'x'; known: (none)");
}

TEST(UnknownName, SendsToTheListWhereItIsLong) {
  Names known;
  for (int i = 10; i < 60; ++i) known.push_back("DDP0" + std::to_string(i));
  EXPECT_EQ(
      unknown_name_message("rule", "DDPO18", known, "bench list rules"),
      "unknown rule 'DDPO18'; did you mean DDP018, DDP010 or DDP011? `bench list rules` shows "
      "all");
  EXPECT_EQ(unknown_name_message("rule", "xyzzy!", known, "bench list rules"),
            "unknown rule 'xyzzy!'; `bench list rules` shows all");
  EXPECT_NE(unknown_name_message("rule", "xyzzy!", known).find("DDP059"), std::string::npos);
}

TEST(ModelCatalog, NamesAreUniqueAndFound) {
  std::set<std::string_view> names;
  for (const ModelEntry& entry : model_catalog()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_EQ(find_model(entry.name), &entry);
    EXPECT_GT(entry.parameter_count, 0);
  }
  EXPECT_EQ(find_model("resnet-50"), nullptr);
}

}  // namespace
}  // namespace bench
