// Every row of the setting table is tried as a flag and as a key of a scenario file, with the row's
// own example; and what makes no sense is refused with words that say what would.
#include "bench/core/error.hpp"
#include "bench/plan/scenario_file.hpp"
#include "bench/plan/setting_table.hpp"
#include "bench/plan/setting_values.hpp"

#include <gtest/gtest.h>

#include <set>

namespace bench {
namespace {

std::string toml_value(const Setting& row, const Value& value) {
  switch (row.type) {
    case ValueType::word:
      return "\"" + std::get<std::string>(value) + "\"";
    case ValueType::integer:
      return std::to_string(std::get<std::int64_t>(value));
    case ValueType::number:
      return std::to_string(std::get<double>(value));
    case ValueType::boolean:
      return std::get<bool>(value) ? "true" : "false";
  }
  return "";
}

TEST(SettingTable, EveryExampleWorksInAFile) {
  for (const Setting& row : setting_table()) {
    std::string text = row.section.empty() ? "" : "[" + std::string(row.section) + "]\n";
    text += std::string(row.key) + " = ";
    std::string list;
    for (const Value& value : values_from_text(row, row.example)) {
      list += (list.empty() ? "" : ", ") + toml_value(row, value);
    }
    text += row.list ? "[" + list + "]" : list;
    EXPECT_NO_THROW(parse_scenario(text, "x.toml", "x")) << text;
  }
}

TEST(SettingTable, EveryExampleWorksAsAFlagAndIsExplained) {
  for (const Setting& row : setting_table()) {
    Settings settings;
    EXPECT_NO_THROW(row.apply(settings, values_from_text(row, row.example))) << row.key;
    EXPECT_FALSE(row.help.empty()) << row.key;
  }
}

TEST(SettingTable, KeysAndFlagsAreDistinct) {
  std::set<std::string_view> keys, flags;
  for (const Setting& row : setting_table()) {
    EXPECT_TRUE(keys.insert(row.key).second) << row.key;
    if (!row.flag.empty()) {
      EXPECT_TRUE(flags.insert(row.flag).second) << row.flag;
    }
  }
}

std::string refusal(std::string_view flag, std::string_view text) {
  const Setting& row = *find_setting_by_flag(flag);
  Settings settings;
  try {
    row.apply(settings, values_from_text(row, text));
  } catch (const BadValue& bad) {
    return bad.what();
  }
  return "accepted";
}

TEST(SettingTable, NonsenseIsRefusedWithWhatWasExpected) {
  EXPECT_EQ(refusal("--batch", "64,many"), "expected a whole number, found 'many'");
  EXPECT_EQ(refusal("--batch", "0"), "expected 1 or more, found 0");
  EXPECT_EQ(refusal("--batch", "-4"), "expected 1 or more, found -4");
  EXPECT_EQ(refusal("--batch", "64,64"), "'64' is listed twice");
  EXPECT_EQ(refusal("--batch", "64,"), "a value is empty");
  EXPECT_EQ(refusal("--batch", "99999999999999999999"),
            "expected a whole number, found '99999999999999999999'");
  EXPECT_EQ(refusal("--steps", "4294967296"), "expected at most 1000000000, found 4294967296");
  EXPECT_EQ(refusal("--strategy", "dp,data_parallel"), "'data_parallel' is listed twice");
  const std::string number = "expected a number above 0 and at most 1000000000";
  for (const char* text : {"0", "inf", "nan", "1e30"}) {
    EXPECT_EQ(refusal("--bucket-cap-mb", text), number) << text;
  }
  EXPECT_EQ(refusal("--batch-per-gpu", "9000000000000000000"),
            "expected at most 1000000000, found 9000000000000000000");
  EXPECT_EQ(refusal("--momentum", "1"), "expected a number from 0 to below 1");
  EXPECT_EQ(refusal("--static-graph", "yes"), "expected true or false, found 'yes'");
  EXPECT_EQ(refusal("--gpu-counts", "2,some"),
            "expected all, powers or numbers of GPUs, found 'some'");
  EXPECT_EQ(refusal("--input", "3x0x224"),
            "expected the shape of one sample such as 3x224x224, found '3x0x224'");
  EXPECT_EQ(refusal("--host", "pyton"),
            "unknown value 'pyton'; did you mean python? known: cpp, "
            "python");
  EXPECT_EQ(refusal("--strategy", "fsdp").substr(0, 24), "unknown strategy 'fsdp';");
}

TEST(SettingTable, BatchesAndBatchesPerGpuReplaceEachOther) {
  Settings settings = load_scenario("batch_size_sweep");
  ASSERT_FALSE(settings.batches_per_gpu.empty());
  const Setting& row = *find_setting_by_flag("--batch");
  row.apply(settings, values_from_text(row, "32"));
  EXPECT_TRUE(settings.batches_per_gpu.empty());
  EXPECT_EQ(settings.batches, std::vector<std::int64_t>{32});
}

TEST(SettingValues, ShapesAndNameParts) {
  EXPECT_EQ(parse_shape("3x224x224"), (std::vector<std::int64_t>{3, 224, 224}));
  EXPECT_EQ(parse_shape("12800"), std::vector<std::int64_t>{12800});
  EXPECT_EQ(case_name_part("my net:v2"), "my_net_v2");
}

}  // namespace
}  // namespace bench
