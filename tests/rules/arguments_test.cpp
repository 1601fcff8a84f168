// What a call is given by dictionaries behind **, and when more may be given than can be seen.
#include "diagnose/model/module.hpp"

#include <gtest/gtest.h>

#include <string>

namespace bench::diagnose {
namespace {

class Script {
 public:
  explicit Script(const std::string& text) : module_("train.py", "train", text) {}

  // What the only make(...) call is given under the name; empty where nothing.
  std::string given(std::string_view name) const {
    const NodeId value = module_.keyword(make(), name);
    return value == kNoNode ? std::string{} : std::string(module_.text(value));
  }
  bool may_be_given_more() const { return module_.has_splat(make()); }
  std::size_t arguments() const { return module_.arguments(make()).size(); }

 private:
  NodeId make() const {
    for (const Call& call : module_.calls())
      if (call.name == "make") return call.node;
    return kNoNode;
  }
  Module module_;
};

TEST(Arguments, OfADictionaryBehindStars) {
  for (const char* options : {"{'lr': 0.1}", "dict(lr=0.1)", "{**base, 'lr': 0.1}",
                              "dict(base, lr=0.1)", "base | {'lr': 0.1}"}) {
    const Script script("base = {'lr': 1, 'size': 8}\noptions = " + std::string(options) +
                        "\nmake(model, **options)\n");
    EXPECT_EQ(script.given("lr"), "0.1") << options;
    EXPECT_FALSE(script.may_be_given_more()) << options;
  }
  const Script both("base = {'lr': 1, 'size': 8}\nmake(model, **{**base, 'lr': 0.1})\n");
  EXPECT_EQ(both.given("size"), "8");
  EXPECT_EQ(both.arguments(), 3U);
}

TEST(Arguments, OfANestedDictionaryAndOfAFunctionThatGivesOneBack) {
  const Script nested("cfg = {'loader': {'lr': 2}}\nmake(**cfg['loader'])\n");
  EXPECT_EQ(nested.given("lr"), "2");
  EXPECT_FALSE(nested.may_be_given_more());
  const Script made(
      "def options():\n    found = dict(lr=3)\n    return found\nmake(**options())\n");
  EXPECT_EQ(made.given("lr"), "3");
  EXPECT_FALSE(made.may_be_given_more());
}

TEST(Arguments, MoreMayBeGivenByWhatIsOutOfSight) {
  for (const char* text :
       {"make(**options)\n", "def f(options):\n    make(**options)\n", "make(*parts)\n",
        "options = {'lr': 1}\noptions.update(more)\nmake(**options)\n",
        "options = {'lr': 1}\ncomplete(options)\nmake(**options)\n",
        "options = {'lr': 1}\noptions[key] = 2\nmake(**options)\n",
        "options = {'lr': 1, **more}\nmake(**options)\n", "options = read()\nmake(**options)\n",
        "if a:\n    options = {}\nelse:\n    options = {'lr': 1}\nmake(**options)\n"})
    EXPECT_TRUE(Script(text).may_be_given_more()) << text;
  const Script stored(
      "options = {'lr': 1}\noptions['size'] = 2\nprint(options)\nmake(**options)\n");
  EXPECT_EQ(stored.given("size"), "2");
  EXPECT_FALSE(stored.may_be_given_more());
}

TEST(Arguments, ADictionaryThatIsMadeOfItselfEnds) {
  const Script script("options = dict(lr=1, **options)\nmake(**options)\n");
  EXPECT_EQ(script.given("lr"), "1");
  EXPECT_TRUE(script.may_be_given_more());
}

}  // namespace
}  // namespace bench::diagnose
