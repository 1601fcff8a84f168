// The tables in docs/ are the tables in the code: a new flag or setting is documented or this
// fails. BENCH_UPDATE_GOLDEN=1 rewrites them.
#include "bench/cli/predict_flags.hpp"
#include "bench/cli/run_flags.hpp"
#include "bench/core/strategy.hpp"
#include "bench/plan/expand.hpp"
#include "bench/plan/scenario_file.hpp"
#include "bench/plan/setting_table.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

namespace bench {
namespace {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) result += c == '|' ? std::string("\\|") : std::string(1, c);
  return result;
}

std::string settings_table() {
  std::string text;
  std::string_view section = "none";
  for (const Setting& row : setting_table()) {
    if (row.section != section) {
      section = row.section;
      text += section.empty() ? "" : "\n### `[" + std::string(section) + "]`\n\n";
      text += "| key | value | flag | meaning |\n|---|---|---|---|\n";
    }
    const std::string value =
        std::string(value_type_name(row.type)) + (row.list ? ", or a list" : "");
    const std::string flag = row.flag.empty() ? "" : "`" + std::string(row.flag) + "`";
    text += "| `" + std::string(row.key) + "` | " + value + " | " + flag + " | " +
            escaped(row.help) + " |\n";
  }
  return text;
}

std::string flags_table(std::span<const cli::Flag> flags) {
  std::string text;
  std::string_view group;
  for (const cli::Flag& flag : flags) {
    if (flag.help.empty()) continue;
    if (flag.group != group) {
      group = flag.group;
      text += "\n### " + std::string(group) + "\n\n| flag | meaning |\n|---|---|\n";
    }
    const std::string typed = std::string(flag.name) + (flag.placeholder.empty() ? "" : " ") +
                              std::string(flag.placeholder);
    text += "| `" + escaped(typed) + "` | " + escaped(flag.help) + " |\n";
  }
  return text;
}

// Compares what stands between the markers with `expected`; rewrites it on request.
void check_page(const std::string& page, const std::string& expected) {
  const std::string path = std::string(BENCH_SOURCE_FOLDER) + "/docs/" + page;
  const std::string begin = "<!-- generated: begin -->\n", end = "<!-- generated: end -->";
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::size_t from = text.find(begin), to = text.find(end);
  ASSERT_NE(from, std::string::npos) << page;
  ASSERT_NE(to, std::string::npos) << page;
  const std::string found = text.substr(from + begin.size(), to - from - begin.size());
  if (found != expected && std::getenv("BENCH_UPDATE_GOLDEN") != nullptr) {
    text.replace(from + begin.size(), found.size(), expected);
    std::ofstream(path) << text;
    GTEST_SKIP() << page << " rewritten";
  }
  EXPECT_EQ(found, expected) << "run with BENCH_UPDATE_GOLDEN=1 to rewrite docs/" << page;
}

// The worked example of docs/scenarios.md means the cases the page says it means.
TEST(Docs, TheExampleScenarioWorks) {
  std::ifstream file(std::string(BENCH_SOURCE_FOLDER) + "/docs/scenarios.md");
  const std::string page{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::string fence = "```toml\n";
  const std::size_t begin = page.find(fence) + fence.size();
  const std::string example = page.substr(begin, page.find("```", begin) - begin);
  const Settings settings = parse_scenario(example, "my_sweep.toml", "my_sweep");
  Devices devices;
  devices.count = 4;
  bool found = false;
  for (const PlannedCase& planned : make_plan(settings, devices, {0, 1, 2, 3}).cases) {
    EXPECT_FALSE(planned.skip) << planned.work.name();
    if (planned.work.strategy != Strategy::distributed) continue;
    found = found || page.find("`" + planned.work.name() + "`") != std::string::npos;
  }
  EXPECT_TRUE(found) << "the page names no case of its example";
}

TEST(Docs, ScenarioKeysAreDocumented) { check_page("scenarios.md", settings_table()); }

TEST(Docs, FlagsAreDocumented) { check_page("command-line.md", flags_table(cli::run_flags())); }

TEST(Docs, FlagsOfPredictAreDocumented) {
  check_page("predict.md", flags_table(cli::predict_flags()));
}

}  // namespace
}  // namespace bench
