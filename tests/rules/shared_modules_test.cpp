// What several programs share is done once: files read and parsed, imports looked up, words
// searched. And what is asked before a value is followed tells no program from another.
#include "diagnose/driver/assemble.hpp"
#include "diagnose/driver/module_cache.hpp"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "tests/rules/model_files.hpp"

namespace bench::diagnose {
namespace {

const std::map<std::string, std::string> kProject = {
    {"app/one.py", "from helpers import log\nfrom missing import gone\nlog(1)\n"},
    {"app/two.py", "from helpers import log\nfrom missing import gone\nlog(2)\n"},
    {"app/helpers.py", "import base\ndef log(x):\n  print(x)  # of torchmetrics\n"},
    {"app/base.py", "rank = 0\n"}};

TEST(SharedModules, AreReadOnceForAllScripts) {
  std::map<std::string, int> reads;
  ModuleCache cache(
      [&](const std::string& path) -> std::optional<std::string> {
        ++reads[path];
        const auto found = kProject.find(path);
        return found == kProject.end() ? std::nullopt : std::optional(found->second);
      },
      [](const std::string& directory) { return list_texts(kProject, directory); },
      SyntaxTree::kParseLimit);
  ProgramContext context;
  context.top = "app";
  const auto one = assemble("app/one.py", context, cache);
  const auto two = assemble("app/two.py", context, cache);
  ASSERT_EQ(one.program->modules().size(), 3U);
  ASSERT_EQ(two.program->modules().size(), 3U);
  EXPECT_EQ(one.program->modules()[1], two.program->modules()[1]);
  EXPECT_EQ(one.program->modules()[2], two.program->modules()[2]);
  for (const auto& [path, count] : reads) EXPECT_EQ(count, 1) << path;
  EXPECT_FALSE(reads.contains("app/missing.py"));  // its directory does not list it

  // Where the imports of a file lead is one table for the scripts of a directory.
  const Module& helpers = *one.program->modules()[1];
  EXPECT_EQ(cache.targets_of(helpers, "app/one.py", "app"),
            cache.targets_of(helpers, "app/two.py", "app"));
  EXPECT_NE(cache.targets_of(helpers, "app/one.py", "app"),
            cache.targets_of(helpers, "app/sub/three.py", "app"));
}

TEST(SharedModules, AreSearchedOnceForAWord) {
  const Module shared("helpers.py", "helpers", "def log(x):\n  show(x)  # torchmetrics\n");
  for (int i = 0; i < 3; ++i) {
    ProgramInput input;
    input.modules.push_back(&shared);
    const Program program(std::move(input));
    EXPECT_TRUE(program.mentions("show"));
    EXPECT_FALSE(program.mentions("torchmetrics"));  // in a comment
    EXPECT_TRUE(program.mentions("show"));
  }
  EXPECT_EQ(shared.searches(), 2U);
}

// A value that the program gives to the name in one way or another.
TEST(SharedModules, TellNamesThatAreGivenValues) {
  const auto given = [](const std::string& text) {
    const Files files({{"main", text}});
    return files.program().may_be_given(files.shown());
  };
  EXPECT_TRUE(given("net = build()\nshow(net)\n"));
  EXPECT_TRUE(given("def run(net):\n  show(net)\n"));
  EXPECT_TRUE(given("from parts import net\nshow(net)\n"));
  EXPECT_TRUE(given("from parts import *\nshow(net)\n"));
  EXPECT_FALSE(given("def net(x): pass\nshow(net)\n"));
  EXPECT_FALSE(given("show(print)\n"));
  EXPECT_TRUE(given("t = make()\nt.net = build()\nshow(t.net)\n"));
  EXPECT_TRUE(given("class T:\n  net = build()\ndef run(t):\n  show(t.net)\n"));
  EXPECT_TRUE(
      given("class T:\n  @property\n  def net(self): return n\ndef run(t):\n  "
            "show(t.net)\n"));
  EXPECT_TRUE(given("t = SimpleNamespace(net=build())\nshow(t.net)\n"));
  EXPECT_TRUE(given("t = EasyDict(parts)\nshow(t.net)\n"));
  EXPECT_TRUE(given("T = namedtuple('T', 'net loss')\ndef run(t):\n  show(t.net)\n"));
  EXPECT_TRUE(given("T = namedtuple('T', 'ne' 't loss')\ndef run(t):\n  show(t.net)\n"));
  EXPECT_FALSE(given("class T:\n  def net(self): pass\ndef run(t):\n  show(t.net)\n"));
  EXPECT_FALSE(given("def run(t):\n  show(t.net)\n"));
}

// The options that fill an attribute, by each spelling.
TEST(SharedModules, ListOptionsByTheirAttribute) {
  const Files files({{"main",
                      "p.add_argument('-b', '--batch-size')\n"
                      "p.add_argument('--lr', dest='rate')\n"
                      "p.add_argument('name')\n"}});
  const Program& program = files.program();
  EXPECT_EQ(program.options_named("batch_size").size(), 1U);
  EXPECT_EQ(program.options_named("rate").size(), 1U);
  EXPECT_EQ(program.options_named("name").size(), 1U);
  EXPECT_EQ(program.options_named("lr").size(), 0U);
}

}  // namespace
}  // namespace bench::diagnose
