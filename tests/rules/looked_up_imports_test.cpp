// Files that a program imports by names which it makes while it runs.
#include "diagnose/driver/looked_up_imports.hpp"

#include "diagnose/driver/assemble.hpp"
#include "diagnose/driver/module_cache.hpp"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace bench::diagnose {
namespace {

using Names = std::vector<std::string>;

Names patterns_in(const std::string& text) {
  Names out;
  for (const LookedUpImport& each :
       looked_up_imports(Module("train.py", "train", "import importlib\n" + text)))
    out.push_back(each.pattern);
  return out;
}

TEST(LookedUpImports, ReadWhatIsWrittenOut) {
  for (const char* text : {"importlib.import_module('models.' + name + '_net')\n",
                           "importlib.import_module('models.%s_net' % name)\n",
                           "importlib.import_module('models.{}_net'.format(name))\n",
                           "importlib.import_module(f'models.{name.lower()}_net')\n",
                           "__import__('models.' + name + '_net')\n",
                           "def find(name):\n    path = 'models.' + name + '_net'\n"
                           "    return importlib.import_module(path)\n"})
    EXPECT_EQ(patterns_in(text), Names{"models.*_net"}) << text;
}

TEST(LookedUpImports, LeaveOutWhatNamesNoFolder) {
  for (const char* text :
       {"importlib.import_module(name)\n", "importlib.import_module(name + '.net')\n",
        "importlib.import_module('net_' + name)\n", "importlib.import_module('models.net')\n",
        "def find(path):\n    return importlib.import_module(path)\n",
        "path = 'a.' + n\npath = 'b.' + n\nimportlib.import_module(path)\n"})
    EXPECT_TRUE(patterns_in(text).empty()) << text;
}

class LookedUp : public ::testing::Test {
 protected:
  Names files_of(const std::map<std::string, std::string>& texts) const {
    ModuleCache cache(
        [&](const std::string& path) -> std::optional<std::string> {
          const auto found = texts.find(path);
          return found == texts.end() ? std::nullopt : std::optional(found->second);
        },
        [&](const std::string& directory) { return list_texts(texts, directory); },
        SyntaxTree::kParseLimit);
    ProgramContext context;
    context.top = ".";
    context.list = [&](const std::string& directory) { return list_texts(texts, directory); };
    Names out;
    for (const auto& module : assemble("train.py", context, cache).keep_alive)
      out.push_back(module->path());
    return out;
  }
};

TEST_F(LookedUp, FilesAreOfTheProgram) {
  EXPECT_EQ(files_of({{"train.py", "import importlib\nimportlib.import_module('models.' + name)\n"},
                      {"models/one.py", "import base\n"},
                      {"models/two/__init__.py", ""},
                      {"models/__init__.py", ""},
                      {"models/notes.txt", ""},
                      {"base.py", ""},
                      {"other/three.py", ""}}),
            (Names{"train.py", "models/one.py", "models/two/__init__.py", "base.py"}));
}

TEST_F(LookedUp, ZoosAreNot) {
  std::map<std::string, std::string> texts = {
      {"train.py", "import importlib\nimportlib.import_module(f'zoo.{name}')\n"}};
  for (int i = 0; i < 40; ++i) texts["zoo/net" + std::to_string(i) + ".py"] = "";
  EXPECT_EQ(files_of(texts), Names{"train.py"});
}

TEST_F(LookedUp, WrittenNamesAreImportsLikeAnyOther) {
  EXPECT_EQ(files_of({{"train.py", "import importlib\nm = importlib.import_module('lib.loop')\n"},
                      {"lib/loop.py", ""}}),
            (Names{"train.py", "lib/loop.py"}));
}

}  // namespace
}  // namespace bench::diagnose
