// Directories that programs add to Python's search path, and the files that are found there.
#include "diagnose/driver/added_paths.hpp"

#include "diagnose/driver/assemble.hpp"
#include "diagnose/driver/module_cache.hpp"
#include "diagnose/driver/task_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace bench::diagnose {
namespace {

using Directories = std::vector<std::string>;
using Texts = std::map<std::string, std::string>;

constexpr const char* kImports =
    "import os, sys\nimport os.path as osp\nfrom pathlib import Path\n";

Directories added_by(const std::string& path, const std::string& statements,
                     const std::string& script = "tools/train.py", const std::string& top = ".") {
  return added_directories({std::make_shared<const Module>(path, "m", kImports + statements)},
                           script, top);
}

Directories added_by_script(const std::string& statements) {
  return added_by("tools/train.py", statements);
}

TEST(AddedPaths, ReadsPathsFromTheFile) {
  const Directories lib = {"lib/"};
  for (const char* statements :
       {"sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'lib'))\n",
        "here = osp.dirname(osp.abspath(__file__))\nsys.path.append(osp.join(here, '../lib'))\n",
        "sys.path.append(str(Path(__file__).resolve().parents[1] / 'lib'))\n",
        "ROOT = Path(__file__).parent.parent\nsys.path.append(f'{ROOT}/lib')\n",
        "root = os.path.dirname(os.path.dirname(__file__))\nsys.path.append(root + '/lib')\n",
        "root = os.path.dirname(__file__)\nsys.path.append('{}/../lib'.format(root))\n",
        "root = os.path.dirname(__file__)\nsys.path.append('%s/../lib' % root)\n",
        "sys.path.append(osp.join(osp.dirname(__file__), osp.pardir, 'lib'))\n",
        "sys.path.insert(1, os.path.join(sys.path[0], '../lib'))\n",
        "sys.path = [Path(__file__).parents[1].joinpath('lib')] + sys.path\n",
        "sys.path += [os.path.join(os.path.dirname(sys.argv[0]), '../lib')]\n",
        "import site\nsite.addsitedir(Path(__file__).parents[1] / 'lib')  # sys.path\n",
        "class Config:\n    here = osp.dirname(__file__)\n    root = osp.join(here, '..')\n"
        "cfg = Config()\nsys.path.append(osp.join(cfg.root, 'lib'))\n",
        "def add_path(path):\n    if path not in sys.path:\n        sys.path.insert(0, path)\n"
        "add_path(osp.join(osp.dirname(__file__), '..', 'lib'))\n"})
    EXPECT_EQ(added_by_script(statements), lib) << statements;
}

TEST(AddedPaths, TakesRelativePathsFromTheScriptOrAbove) {
  EXPECT_EQ(added_by_script("sys.path.append('lib')\n"), (Directories{"tools/lib/", "lib/"}));
  EXPECT_EQ(added_by_script("sys.path.append('../lib')\n"), Directories{"lib/"});
  EXPECT_EQ(added_by_script("for each in ('a', 'b'):\n    sys.path.append(each)\n"),
            (Directories{"tools/a/", "a/", "tools/b/", "b/"}));
}

TEST(AddedPaths, TriesTheEndsOfPathsOfOtherMachines) {
  EXPECT_EQ(added_by_script("sys.path.append('/home/me/project/lib')\n"),
            (Directories{"lib/", "project/lib/", "me/project/lib/"}));
  EXPECT_EQ(added_by_script("sys.path.append('~/project/')\n"), Directories{"project/"});
}

TEST(AddedPaths, StaysInsideOfTheTree) {
  EXPECT_TRUE(added_by_script("sys.path.append(Path(__file__).parents[2] / 'lib')\n").empty());
  EXPECT_TRUE(added_by("app/tools/a.py", "sys.path.append(Path(__file__).parents[2] / 'lib')\n",
                       "app/tools/a.py", "app")
                  .empty());
  EXPECT_EQ(added_by("app/tools/a.py", "sys.path.append(Path(__file__).parents[1] / 'lib')\n",
                     "app/tools/a.py", "app"),
            Directories{"app/lib/"});
}

TEST(AddedPaths, KnowsNothingOfWhatARunSays) {
  EXPECT_TRUE(added_by_script("sys.path.append(os.environ['LIB'])\n").empty());
  EXPECT_TRUE(added_by_script("sys.path.append(args.lib)\n").empty());
  EXPECT_TRUE(added_by_script("a = a\nsys.path.append(a)\n").empty());
  EXPECT_TRUE(
      added_by_script("def add(path):\n    sys.path.append(add(path))\nadd(add)\n").empty());
  EXPECT_TRUE(added_by_script("names.append('lib')  # sys.path\n").empty());
}

class AddedPathsOfProgram : public ::testing::Test {
 protected:
  std::unique_ptr<ModuleCache> cache() const {
    return std::make_unique<ModuleCache>(
        [this](const std::string& path) -> std::optional<std::string> {
          const auto found = texts_.find(path);
          return found == texts_.end() ? std::nullopt : std::optional(found->second);
        },
        [this](const std::string& directory) { return list_texts(texts_, directory); },
        SyntaxTree::kParseLimit);
  }

  std::vector<std::string> files_of(const std::string& script) const {
    const auto all = cache();
    ProgramContext context;
    context.top = ".";
    const auto assembled = assemble(script, context, *all);
    std::vector<std::string> out;
    for (const auto& module : assembled.keep_alive) out.push_back(module->path());
    return out;
  }

  // A helper of another file adds what adds the next, as in projects with a config.
  Texts texts_ = {
      {"main/train.py", "import config\nfrom base import Trainer\nimport numpy\n"},
      {"main/config.py",
       "import sys, os.path as osp\nroot = osp.join(osp.dirname(__file__), '..')\n"
       "sys.path.insert(0, osp.join(root, 'common'))\nfrom tools.paths import add\n"
       "add(osp.join(root, 'data'))\n"},
      {"common/base.py", "import images\nclass Trainer: pass\n"},
      {"common/tools/paths.py", "import sys\ndef add(path):\n    sys.path.insert(0, path)\n"},
      {"data/images.py", "size = 3\n"},
      {"elsewhere/base.py", ""}};
};

TEST_F(AddedPathsOfProgram, AreLookedIn) {
  EXPECT_EQ(files_of("main/train.py"),
            (std::vector<std::string>{"main/train.py", "main/config.py", "common/base.py",
                                      "common/tools/paths.py", "data/images.py"}));
}

TEST_F(AddedPathsOfProgram, ComeAfterFilesBesideTheScript) {
  texts_["main/base.py"] = "class Trainer: pass\n";
  const auto files = files_of("main/train.py");
  EXPECT_EQ(std::count(files.begin(), files.end(), "common/base.py"), 0);
}

TEST_F(AddedPathsOfProgram, TellModulesFromScripts) {
  std::vector<SourceFile> given;
  for (const auto& [path, text] : texts_) given.push_back({path, FileType::python, "."});
  const auto all = cache();
  const TaskPlan plan(given, *all);
  std::vector<std::string> scripts;
  for (const SourceFile& file : plan.scripts()) scripts.push_back(file.path);
  // data/ is added by a helper of another file, which the plan does not read.
  EXPECT_EQ(scripts,
            (std::vector<std::string>{"data/images.py", "elsewhere/base.py", "main/train.py"}));
}

}  // namespace
}  // namespace bench::diagnose
