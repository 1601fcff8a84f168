// Projects whose files import most of a library: what is checked in which program, and what is
// looked up once for a file.
#include "bench/core/temporary_directory.hpp"
#include "diagnose/driver/assemble.hpp"
#include "diagnose/driver/diagnose.hpp"
#include "diagnose/driver/module_cache.hpp"
#include "diagnose/model/script_kind.hpp"
#include "diagnose/syntax/trigrams.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>

namespace bench::diagnose {
namespace {

namespace fs = std::filesystem;

// rank 0 alone joins: told in whatever program has the file.
constexpr const char* kMistake =
    "import torch.distributed as dist\n"
    "if dist.get_rank() == 0:\n"
    "    dist.barrier()\n";

class Library : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  // lib/part0.py imports lib/part1.py, and so on: more of them than a program of tests holds.
  void write_chain() const {
    for (int i = 0; i < kParts; ++i)
      write("lib/part" + std::to_string(i) + ".py",
            "import torch\nimport part" + std::to_string(i + 1) + "\n");
    write("lib/part" + std::to_string(kParts) + ".py", kMistake);
  }

  // Severities of DDP014 by file.
  std::map<std::string, Severity> findings(unsigned threads = 1) const {
    DiagnoseOptions options;
    options.selection.select = {"DDP014"};
    options.paths = {root_.string()};
    options.threads = threads;
    std::map<std::string, Severity> out;
    for (const Finding& each : bench::diagnose::diagnose(options).findings)
      out[fs::path(each.file).lexically_relative(root_).string()] = each.severity;
    return out;
  }

  static constexpr int kParts = 40;
  const TemporaryDirectory folder_;
  const fs::path root_ = folder_.path();
};

// Notes alone where only tests led to it, as their own findings are.
TEST_F(Library, IsCheckedAsIfItHadNoTests) {
  write_chain();
  for (int i = 0; i < 3; ++i)
    write("tests/test_" + std::to_string(i) + ".py",
          "import sys\nsys.path.insert(0, 'lib')\nimport pytest\nfrom lib import part0\n" +
              std::string(kMistake));
  for (const unsigned threads : {1U, 4U}) {
    const auto found = findings(threads);
    ASSERT_EQ(found.size(), 4U);
    EXPECT_EQ(found.at("lib/part40.py"), Severity::error);
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(found.at("tests/test_" + std::to_string(i) + ".py"), Severity::info);
  }
}

// No statement imports the plug-in, and it calls nothing.
TEST_F(Library, IsCheckedBesideItsPlugins) {
  write_chain();
  for (const char* name : {"a", "b"})
    write("plugins/" + std::string(name) + ".py",
          "import torch\nimport torch.distributed as dist\nfrom lib import part0\n"
          "class Task(part0.Base):\n  if dist.get_rank() == 0:\n    dist.barrier()\n");
  for (const unsigned threads : {1U, 4U}) {
    const auto found = findings(threads);
    ASSERT_EQ(found.size(), 3U);
    for (const auto& [file, severity] : found) EXPECT_EQ(severity, Severity::error) << file;
  }
}

TEST(ScriptKind, TellsTestsAndDefinitions) {
  const auto module = [](const std::string& path, const std::string& text) {
    return std::make_unique<Module>(path, "x", text);
  };
  EXPECT_TRUE(is_test(*module("a.py", "import pytest\n")));
  EXPECT_TRUE(is_test(*module("tests/test_a.py", "import torch\n")));
  EXPECT_FALSE(is_test(*module("test_a.py", "import torch\n")));  // how some call an evaluation
  EXPECT_FALSE(is_test(*module("tests/train.py", "import torch\n")));
  EXPECT_FALSE(is_test(*module("contests/test_a.py", "import torch\n")));
  EXPECT_FALSE(is_test(*module("a.py", "from unittest import mock\n")));
  EXPECT_TRUE(is_test(*module("a.py", "import unittest\nclass A(unittest.TestCase): pass\n")));
  for (const char* text :
       {"import torch\nclass Net: pass\n", "log = logging.getLogger()\n",
        "@register('net')\ndef net(): train()\n", "class A:\n  x = make()\n  hook(x)\n"})
    EXPECT_TRUE(only_defines(*module("a.py", text))) << text;
  for (const char* text :
       {"def main(): pass\nif __name__ == '__main__':\n  main()\n", "train()\n",
        "for x in load():\n  pass\n", "with strategy():\n  fit()\n", "import a; a.run(1)\n",
        "def main(): pass\nraise SystemExit(main())\n", "def main(): pass\nstatus = main()\n",
        "import torch.distributed as dist\ndef main():\n  dist.init_process_group()\n"})
    EXPECT_FALSE(only_defines(*module("a.py", text))) << text;
}

TEST(ScriptKind, TellsWhatRunsFromWhatSharesOut) {
  const auto module = [](const std::string& text) {
    return std::make_unique<Module>("a.py", "x", "import torch\n" + text);
  };
  const std::string wrap = "torch.nn.DataParallel(net)\n";
  const std::string guard = "if __name__ == '__main__':\n  main()\n";
  for (const std::string& text : {"model = " + wrap, "def main():\n  model = " + wrap + guard,
                                  "def main():\n  model = " + wrap + "main()\n"})
    EXPECT_TRUE(shares_out_itself(*module(text))) << text;
  for (const std::string& text :
       {std::string("import sys\nsys.path.append('..')\n"), "def main():\n  net()\n" + guard}) {
    EXPECT_TRUE(runs_itself(*module(text))) << text;
    EXPECT_FALSE(shares_out_itself(*module(text))) << text;
  }
  for (const std::string& text :
       {std::string("def train_one_epoch(loss):\n  loss.backward()\n"), "def make():\n  " + wrap}) {
    const auto helper = module(text);
    EXPECT_FALSE(runs_itself(*helper) || shares_out_itself(*helper)) << text;
    EXPECT_FALSE(only_defines(*helper)) << text;
  }
}

// Whatever the words are: what the text holds is never denied.
TEST(Trigrams, NeverDenyAWordOfTheText) {
  std::mt19937 random(7);
  std::string text;
  for (int i = 0; i < 4000; ++i) text += static_cast<char>(random() % 256);
  const Trigrams trigrams(text);
  for (std::size_t length = 0; length < 12; ++length)
    for (std::size_t at = 0; at + length <= text.size(); ++at)
      ASSERT_TRUE(trigrams.may_hold(text.substr(at, length)));
  const Trigrams script("for x in loader:\n    model(x).backward()\n");
  int denied = 0;
  for (const char* word : {"set_epoch", "torchmetrics", "no_sync", "SLURM", "accelerate"})
    denied += script.may_hold(word) ? 0 : 1;
  EXPECT_EQ(denied, 5);
  EXPECT_TRUE(Trigrams("").may_hold("ab"));  // too short to tell
}

bool says_save(std::string_view name) { return name.find("save") != std::string_view::npos; }
bool says_load(std::string_view name) { return name.find("load") != std::string_view::npos; }

TEST(CallNames, GiveCallsInTheOrderOfTheSource) {
  const Module module("a.py", "a", "save(1)\nlog(2)\nx.save_all(load(3))\nsave(4)\n");
  const auto texts = [&](Module::NameTest says) {
    std::vector<std::string> out;
    for (const std::uint32_t index : module.calls_that(says))
      out.emplace_back(module.text(module.calls()[index].node));
    return out;
  };
  const std::vector<std::string> saves = {"save(1)", "x.save_all(load(3))", "save(4)"};
  EXPECT_EQ(texts(says_save), saves);
  EXPECT_EQ(texts(says_load), std::vector<std::string>{"load(3)"});
  EXPECT_EQ(texts(says_save), saves);
}

TEST_F(Library, FollowsNoDirectoryOutOfTheTree) {
  write("outside/far.py", "x = 1\n");
  write("tree/near/part.py", "x = 1\n");
  fs::create_directory_symlink(root_ / "outside", root_ / "tree/out");
  fs::create_directory_symlink(root_ / "tree/near", root_ / "tree/in");
  fs::create_symlink(root_ / "outside/far.py", root_ / "tree/near/far.py");
  ModuleCache cache([](const std::string&) { return std::nullopt; }, list_directory,
                    SyntaxTree::kParseLimit);
  const std::string top = (root_ / "tree").string();
  for (int i = 0; i < 2; ++i) {  // the second answer is a remembered one
    EXPECT_TRUE(cache.leads_out(top + "/out/far.py", top));
    EXPECT_TRUE(cache.leads_out(top + "/near/far.py", top));
    EXPECT_FALSE(cache.leads_out(top + "/near/part.py", top));
    EXPECT_FALSE(cache.leads_out(top + "/in/part.py", top));
    EXPECT_FALSE(cache.leads_out(top + "/missing/part.py", top));
  }
}

TEST_F(Library, KnowsWhatDirectoriesHoldFromOneListing) {
  write("near/part.py", "x = 1\n");
  fs::create_symlink(root_ / "near/part.py", root_ / "near/link.py");
  std::vector<std::string> listed;
  KnownPaths paths([&](const std::string& directory) {
    listed.push_back(directory);
    return list_directory(directory);
  });
  const std::string top = root_.string() + '/';
  EXPECT_FALSE(paths.find(top + "near/part.py")->is_link);
  EXPECT_TRUE(paths.find(top + "near/link.py")->is_link);
  EXPECT_TRUE(paths.find(top + "near")->is_directory);
  const std::size_t before = listed.size();
  EXPECT_FALSE(paths.find(top + "near/other.py"));
  EXPECT_FALSE(paths.find(top + "missing/deep/part.py"));  // no listing of what is not there
  EXPECT_EQ(listed.size(), before);
}

// A directory that one may enter and not list.
TEST_F(Library, AsksTheDiskWhereADirectoryCannotBeListed) {
  write("closed/near/part.py", "x = 1\n");
  const std::string closed = (root_ / "closed/").string();
  KnownPaths paths([&](const std::string& directory) {
    return directory == closed ? std::vector<DirectoryEntry>{} : list_directory(directory);
  });
  EXPECT_TRUE(paths.find(closed + "near")->is_directory);
  EXPECT_TRUE(paths.find(closed + "near/part.py"));
  EXPECT_FALSE(paths.find(closed + "far"));
  EXPECT_FALSE(paths.find(closed + "far/part.py"));
}

}  // namespace
}  // namespace bench::diagnose
