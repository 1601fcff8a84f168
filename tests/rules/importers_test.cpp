// What files import, by their texts, and which file of a project that means.
#include "diagnose/driver/importers.hpp"

#include "diagnose/driver/import_texts.hpp"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace bench::diagnose {
namespace {

TEST(Importers, ReadsImportsInAllTheirForms) {
  const std::vector<std::string> expected = {"a.b", "c",  "d",   "d.e",  "d.f",
                                             ".",   ".g", "..h", "..h.i"};
  EXPECT_EQ(imports_in("import a.b as x, c\n"
                       "from d import (e as y,\n"
                       "               f)\n"
                       "from . import g\n"
                       "    from ..h import i  # later\n"),
            expected);
  EXPECT_EQ(imports_in("import a; import b\r\nfrom c import d;\r\n"),
            (std::vector<std::string>{"a", "c", "c.d"}));
}

TEST(Importers, ReadsWhatAModuleIsNamedByInAText) {
  const std::vector<std::string> expected = {"importlib", "models.*.trainer"};
  EXPECT_EQ(imports_in("import importlib\n"
                       "trainer = importlib.import_module('models.%s.trainer' % name).Trainer()\n"),
            expected);
  EXPECT_TRUE(may_import("run.py", "models.*.trainer", "models/mm/trainer.py"));
  EXPECT_FALSE(may_import("run.py", "models.*", "models/mm.py"));
}

TEST(Importers, TellsWhichFileAnImportMeans) {
  EXPECT_TRUE(may_import("train.py", "lib.loop", "lib/loop.py"));
  EXPECT_TRUE(may_import("tools/train.py", "loop", "tools/loop.py"));
  EXPECT_TRUE(may_import("lib/__init__.py", ".loop", "lib/loop.py"));
  EXPECT_TRUE(may_import("train.py", "lib", "lib/__init__.py"));
  EXPECT_FALSE(may_import("train.py", "loop", "lib/loop.py"));
  EXPECT_FALSE(may_import("other/a.py", ".loop", "lib/loop.py"));
  EXPECT_FALSE(may_import("train.py", "lib.loops", "lib/loop.py"));
}

TEST(Importers, FollowsDirectoriesThatAProgramAdds) {
  std::map<std::string, std::string> files = {{"train.py", "import paths\nimport loop\n"},
                                              {"paths.py", "import sys\nsys.path.append('lib')\n"},
                                              {"lib/loop.py", ""},
                                              {"other/a.py", "import loop\n"},
                                              {"other/loop.py", ""}};
  const std::vector<std::string> names = {"train.py", "paths.py", "lib/loop.py", "other/a.py",
                                          "other/loop.py"};
  const auto read = [&](const std::string& path) { return std::optional(files.at(path)); };
  EXPECT_EQ(importers_of("lib/loop.py", names, read), std::vector<std::string>{"train.py"});
  files["paths.py"] = "";
  EXPECT_TRUE(importers_of("lib/loop.py", names, read).empty());
}

}  // namespace
}  // namespace bench::diagnose
