// Globs of --exclude and per-file-ignores: what they match, and what is no glob.
#include "diagnose/driver/path_pattern.hpp"

#include "bench/core/error.hpp"

#include <gtest/gtest.h>

namespace bench::diagnose {
namespace {

bool matches(const std::string& glob, const std::string& path, bool is_folder = false) {
  return PathPattern(glob, "/home/project", "--exclude").matches(parts_of_path(path), is_folder);
}

TEST(PathPatterns, MeetANameAnywhere) {
  for (const char* glob : {"old", "ol?", "o*", "[a-o]ld", "**/old"}) {
    EXPECT_TRUE(matches(glob, "/home/project/old")) << glob;
    EXPECT_TRUE(matches(glob, "/home/project/a/b/old")) << glob;
    EXPECT_TRUE(matches(glob, "/home/project/a/old/c/train.py")) << glob;
    EXPECT_FALSE(matches(glob, "/home/project/new/train.py")) << glob;
  }
  EXPECT_TRUE(matches("*.ipynb", "/home/project/a/b.ipynb"));
  EXPECT_FALSE(matches("*.ipynb", "/home/project/a/b.ipynb.py"));
  EXPECT_TRUE(matches("train.py", "/home/project/a/train.py"));
  EXPECT_FALSE(matches("home", "/home/project/a.py"));     // above the pattern's folder
  EXPECT_FALSE(matches("project", "/home/project/a.py"));  // the folder itself
}

TEST(PathPatterns, WithASlashBeginAtTheirFolder) {
  EXPECT_TRUE(matches("/old", "/home/project/old/a.py"));
  EXPECT_FALSE(matches("/old", "/home/project/a/old/a.py"));
  EXPECT_TRUE(matches("a/*.py", "/home/project/a/b.py"));
  EXPECT_FALSE(matches("a/*.py", "/home/project/a/c/b.py"));
  EXPECT_FALSE(matches("a/*.py", "/home/project/b/a/b.py"));
  EXPECT_TRUE(matches("./a/b.py", "/home/project/a/b.py"));
  EXPECT_TRUE(matches("tests/*", "/home/project/tests/a/b.py"));  // in a folder that is named
  EXPECT_TRUE(matches("../other/*.py", "/home/other/b.py"));
  EXPECT_FALSE(matches("a/*.py", "/home/other/a/b.py"));
  EXPECT_TRUE(matches("b.py", "/home/other/a/b.py"));
}

TEST(PathPatterns, SpanFoldersWithTwoStars) {
  EXPECT_TRUE(matches("third_party/**", "/home/project/third_party/a/b.py"));
  EXPECT_FALSE(matches("third_party/**", "/home/project/third_party"));
  EXPECT_FALSE(matches("third_party/**", "/home/project/a/third_party/b.py"));
  EXPECT_TRUE(matches("a/**/b.py", "/home/project/a/b.py"));
  EXPECT_TRUE(matches("a/**/b.py", "/home/project/a/c/d/b.py"));
  EXPECT_TRUE(matches("**/gen/**/x_*.py", "/home/project/q/gen/x/gen/r/x_1.py"));
  EXPECT_FALSE(matches("**/gen/**/x_*.py", "/home/project/q/gen/x/y_1.py"));
  EXPECT_TRUE(matches("**", "/home/project/a.py"));
}

TEST(PathPatterns, WithASlashAtTheEndMeanFolders) {
  EXPECT_TRUE(matches("old/", "/home/project/a/old/b.py"));
  EXPECT_TRUE(matches("old/", "/home/project/a/old", true));
  EXPECT_FALSE(matches("old/", "/home/project/a/old"));
}

TEST(PathPatterns, TakeCharactersAsTheyAreBehindABackslash) {
  EXPECT_TRUE(matches("\\[a\\]", "/home/project/[a]"));
  EXPECT_FALSE(matches("\\*.py", "/home/project/a.py"));
  EXPECT_TRUE(matches("[]a].py", "/home/project/].py"));
  EXPECT_TRUE(matches("[!a].py", "/home/project/b.py"));
  EXPECT_TRUE(matches("{{name}}", "/home/project/{{name}}/a.py"));
}

TEST(PathPatterns, RefuseWhatIsNoGlob) {
  for (const char* glob : {"", "/", ".", "./", "..", "[", "[a", "[!]", "a[b/c]", "a\\", "!a"}) {
    try {
      PathPattern(glob, "/home/project", "bench.toml:3: exclude");
      ADD_FAILURE() << glob;
    } catch (const UsageError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("bench.toml:3: exclude: '"))
          << error.what();
    }
  }
}

}  // namespace
}  // namespace bench::diagnose
