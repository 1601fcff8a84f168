// Our own parser gives the trees that tree-sitter gives, also where the grammar is in two minds.
#include "diagnose/syntax/tree_builder.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace bench::diagnose {
namespace {

PlainParser::Outcome outcome_of(const std::string& text) {
  ParseTables tables(*tree_sitter_python());
  PlainTree tree;
  return PlainParser(*tree_sitter_python(), tables, text, tree).parse(std::chrono::seconds(5));
}

bool is_same(const Node& a, const Node& b) {
  return a.kind == b.kind && a.field == b.field && a.op == b.op && a.begin == b.begin &&
         a.end == b.end && a.parent == b.parent && a.first_child == b.first_child &&
         a.next_sibling == b.next_sibling && a.last == b.last;
}

void expect_library_tree(const std::string& text) {
  const SyntaxTree ours = SyntaxTree::parse(text);
  const SyntaxTree library = TreeBuilder::by_library(text);
  EXPECT_EQ(ours.has_errors(), library.has_errors()) << text;
  ASSERT_EQ(ours.size(), library.size()) << text;
  for (NodeId id = 0; id < ours.size(); ++id)
    ASSERT_TRUE(is_same(ours[id], library[id])) << text << "\nnode " << id;
  ASSERT_EQ(ours.comments().size(), library.comments().size()) << text;
  for (std::size_t at = 0; at < ours.comments().size(); ++at) {
    EXPECT_EQ(ours.comments()[at].begin, library.comments()[at].begin) << text;
    EXPECT_EQ(ours.comments()[at].end, library.comments()[at].end) << text;
  }
}

// Each has several readings for a while: tuples and targets, print as a statement and as a call,
// a starred name and what is taken of it, words that are keywords in some places only.
constexpr const char* kTwoReadings[] = {
    "a, b = c, d\n",
    "x.y, z[0] = w = [], []\n",
    "[a, b], (c, d) = pairs\n",
    "for a, (b, *c) in d: pass\n",
    "print(f'{rank}: {loss:.3f}')\n",
    "print('epoch', i, \"of\" + name, file=f)",
    "print >> log, 'done'\n",
    "print (a), b\n",
    "f(*args, **kwargs)\n",
    "f(x, *a.b)\n",
    "f(*a.b[1:], key=3) >= 2\n",
    "[*f(7), X]\n",
    "(*x.shape, 8)\n",
    "b, n, *_, device = *x.shape[:2], x.device\n",
    "match = match(case)\nmatch match:\n  case [1, *rest] if rest: pass\n  case _: pass\n",
    "type = type(x)\ntype X = int\n",
    "with a as b, c(d) as (e, f): pass\nwith (a as b, c): pass\n",
    "async def f():\n    async for x, y in z: await g(*x)\n    return [i async for i in x]\n",
    "lambda x, *y: (yield)\n",
    "exec = exec('a') if exec else None\n",
    "x: int = a if b else c\n",
    "def f(a, /, b: int = 3, *, c, **d) -> int: ...\n",
};

constexpr const char* kPlain[] = {
    "",
    "\n\n",
    "# only a comment",
    "\xEF\xBB\xBFimport os\n",
    "x = 'caf\xC3\xA9'  # \xE2\x82\xAC\r\ny = 1\r\n",
    "if a:\n    b\n\n    # within\n# outside\nc\n",
    "x = f'''{a!r:>{width}} {{}}\n''' r'\\n' b'\\x00'\n",
    "a = 1 \\\n  + 2\nclass A(B, metaclass=C):\n\tx = 1\n",
    "try:\n  pass\nexcept* E as e:\n  raise X from e\nelse:\n  pass\nfinally:\n  pass\n",
};

TEST(PlainParser, GivesTheLibrarysTreeOfEveryReading) {
  for (const char* text : kTwoReadings) expect_library_tree(text);
  for (const char* text : kPlain) {
    expect_library_tree(text);
    EXPECT_EQ(outcome_of(text), PlainParser::Outcome::parsed) << text;
  }
}

// Cut anywhere: the text may be whole, broken, or end within a string.
TEST(PlainParser, GivesTheLibrarysTreeOfEveryBeginning) {
  for (const std::string text : kTwoReadings)
    for (std::size_t size = 0; size < text.size(); ++size)
      expect_library_tree(text.substr(0, size));
}

TEST(PlainParser, GivesTheLibrarysTreeOfWholeScripts) {
  std::size_t files = 0;
  std::size_t plain = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(BENCH_RULE_TESTS)) {
    if (entry.path().extension() != ".py") continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    expect_library_tree(text);
    ++files;
    if (outcome_of(text) == PlainParser::Outcome::parsed) ++plain;
  }
  EXPECT_GT(files, 100U);
  EXPECT_GT(plain, files * 9 / 10);
}

std::string repeated(const std::string& part, int times) {
  std::string out;
  for (int each = 0; each < times; ++each) out += part;
  return out;
}

// Deep stacks of several readings, each with a copy of its own here and none in tree-sitter.
TEST(PlainParser, LeavesDeepReadingsToTheLibrary) {
  for (const std::string& text :
       {"x = " + repeated("not ", 20000) + "f(*g(1))\n", repeated("a = ", 5000) + "print(*f(7))\n",
        "x = " + repeated("[", 20000) + repeated("f(*a),", 5000) + repeated("]", 20000) + "\n",
        "x = a" + repeated(" if f(*g(1)) else b", 5000) + "\n"}) {
    EXPECT_EQ(outcome_of(text), PlainParser::Outcome::not_plain) << text.substr(0, 20);
    EXPECT_FALSE(SyntaxTree::parse(text).has_errors()) << text.substr(0, 20);
  }
}

TEST(PlainParser, LeavesErrorsToTheLibrary) {
  for (const char* text : {"def f(:\n", "x = = 1\n", "a b c\n", "\"open\n", "x = 1 ? 2\n"})
    EXPECT_EQ(outcome_of(text), PlainParser::Outcome::not_plain) << text;
}

// tree-sitter's memory is one thread's own, and its scanner is used by both parsers.
TEST(PlainParser, SharesThreadsWithTheLibrary) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([] {
      for (int round = 0; round < 50; ++round)
        for (const char* text : {"if a:\n  x = f'{b}'\n", "def f(:\n  'open\n", "print(*a)\n"})
          EXPECT_GT(SyntaxTree::parse(text).size(), 1U);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(PlainParser, StopsAtItsLimit) {
  std::string text;
  for (int line = 0; line < 100000; ++line) text += "x = [1, 2, 3]\n";
  const SyntaxTree tree = SyntaxTree::parse(text, std::chrono::microseconds(100));
  EXPECT_TRUE(tree.timed_out());
  EXPECT_EQ(tree.size(), 1U);
}

}  // namespace
}  // namespace bench::diagnose
