// Scripts in other encodings and with other line ends: decoded as Python would, findings at the
// right columns, and a word on what Python would refuse.
#include "diagnose/driver/diagnose.hpp"
#include "diagnose/driver/source_text.hpp"
#include "diagnose/output/render.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace bench::diagnose {
namespace {

using namespace std::string_view_literals;

// Data that is not sharded: DDP017 at DataLoader(...), line 4.
const std::string kScript =
    "from torch.nn.parallel import DistributedDataParallel as DDP\n"
    "from torch.utils.data import DataLoader\n"
    "model = DDP(net)\n"
    "loader = DataLoader(data, shuffle=True)\n"
    "for x in loader:\n"
    "    model(x).backward()\n";

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
  return text;
}

// ASCII only; `width` bytes for a character.
std::string wide(std::string_view text, std::size_t width, bool big_endian) {
  std::string out;
  for (const char c : text) {
    std::string unit(width, '\0');
    unit[big_endian ? width - 1 : 0] = c;
    out += unit;
  }
  return out;
}

std::vector<Finding> unsharded(const std::string& bytes) {
  DiagnoseOptions options;
  options.selection.select = {"DDP017"};
  return diagnose_texts({{"train.py", bytes}}, "train.py", options);
}

void expect_at(const std::string& bytes, std::uint32_t line, std::uint32_t column) {
  const auto found = unsharded(bytes);
  ASSERT_EQ(found.size(), 1U) << bytes;
  EXPECT_EQ(found[0].line, line) << bytes;
  EXPECT_EQ(found[0].column, column) << bytes;
  EXPECT_EQ(found[0].excerpt.find('\r'), std::string::npos) << bytes;
}

// A terminal gives 日 two cells and a combining accent none; the mark stands below the finding.
TEST(Encoding, TheMarkStandsBelowWideLetters) {
  for (const auto& [text, cells] : {std::pair<std::string, std::size_t>{"'ab'; ", 15},
                                    {"'\u65E5\u672C'; ", 17},
                                    {"'e\u0301'; ", 14},
                                    {"'\U0001F600'; ", 15}}) {
    const auto found = unsharded(replaced(kScript, "loader =", text + "loader ="));
    ASSERT_EQ(found.size(), 1U) << text;
    const std::string shown = render_text(found, {});
    EXPECT_NE(shown.find("\n  | " + std::string(cells, ' ') + "^^^^"), std::string::npos) << shown;
  }
}

TEST(Encoding, LineEndsTabsAndMarksLeaveThePlaceRight) {
  expect_at(kScript, 4, 10);
  expect_at("\xEF\xBB\xBF" + kScript, 4, 10);
  expect_at(replaced(kScript, "\n", "\r\n"), 4, 10);
  expect_at(replaced(kScript, "\n", "\r"), 4, 10);
  expect_at("\f\n" + kScript, 5, 10);
  expect_at(replaced(kScript, "loader = ", "loader\t=\t"), 4, 10);
  expect_at(replaced(kScript, "loader", "load\xC3\xA9"), 4, 9);
  // On the first line, a byte order mark is no column.
  const SyntaxTree marked = SyntaxTree::parse("\xEF\xBB\xBFx = 1\n");
  EXPECT_EQ(marked.position(3).column, 1U);
  EXPECT_EQ(marked.line_text(1), "x = 1");
}

TEST(Encoding, WideTextIsDecodedWithAndWithoutAMark) {
  const struct {
    std::string_view name;
    std::string mark;
    std::size_t width;
    bool big_endian;
  } kinds[] = {{"UTF-16", "\xFF\xFE", 2, false},
               {"UTF-16", "\xFE\xFF", 2, true},
               {"UTF-32", std::string("\xFF\xFE\0\0"sv), 4, false},
               {"UTF-32", std::string("\0\0\xFE\xFF"sv), 4, true}};
  for (const auto& kind : kinds)
    for (const std::string& mark : {kind.mark, std::string()}) {
      const std::string bytes = mark + wide(kScript, kind.width, kind.big_endian);
      const SourceText source = to_source_text(bytes, FileType::python);
      EXPECT_EQ(source.text, kScript);
      EXPECT_FALSE(source.same_offsets);
      EXPECT_EQ(source.problem, "is " + std::string(kind.name) + ": Python cannot read it");
      expect_at(bytes, 4, 10);
    }
  EXPECT_EQ(to_source_text("\xFF\xFE" + wide("a: 1\n", 2, false), FileType::yaml).problem, "");
}

TEST(Encoding, CodingCommentsAreFollowed) {
  const std::string latin = "#!/usr/bin/env python\n# -*- coding: latin-1 -*-\n# caf\xE9\n";
  const SourceText source = to_source_text(latin, FileType::python);
  EXPECT_EQ(source.problem, "");
  EXPECT_NE(source.text.find("caf\xC3\xA9"), std::string::npos);
  EXPECT_FALSE(source.same_offsets);
  expect_at(latin + replaced(kScript, "loader", "load\xE9"), 7, 9);
  // Below a line of code a coding comment is a comment.
  EXPECT_NE(to_source_text("import os\n# coding: latin-1\n'\xE9'\n", FileType::python).problem, "");
  EXPECT_EQ(
      to_source_text("# vim: set fileencoding=utf-8 :\n'\xC3\xA9'\n", FileType::python).problem,
      "");
  EXPECT_NE(to_source_text("# coding: klingon\n", FileType::python).problem.find("'klingon'"),
            std::string::npos);
}

TEST(Encoding, NoEditIsOfferedWhereOffsetsDiffer) {
  const std::string loop =
      "from torch.utils.data import DataLoader\n"
      "from torch.utils.data.distributed import DistributedSampler\n"
      "from torch.nn.parallel import DistributedDataParallel as DDP\n"
      "model = DDP(net)\n"
      "sampler = DistributedSampler(data)\n"
      "loader = DataLoader(data, sampler=sampler)\n"
      "for epoch in range(9):\n"
      "    for x in loader:\n"
      "        model(x).backward()\n";
  DiagnoseOptions options;
  options.selection.select = {"DDP018"};
  for (const std::string& cookie :
       {std::string("# coding: utf-8\n"), std::string("# coding: latin-1\n# \xE9\n")}) {
    const auto found = diagnose_texts({{"train.py", cookie + loop}}, "train.py", options);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].fix.has_value(), cookie.find("utf-8") != std::string::npos);
  }
}

TEST(Encoding, WhatPythonRefusesIsSaid) {
  EXPECT_EQ(to_source_text(kScript, FileType::python).problem, "");
  EXPECT_NE(to_source_text("# \xE9\n", FileType::python).problem.find("not UTF-8"),
            std::string::npos);
  const SourceText source = to_source_text(kScript + std::string("\0\n"sv), FileType::python);
  EXPECT_NE(source.problem.find("NUL"), std::string::npos);
  EXPECT_EQ(source.text, kScript + " \n");
  expect_at(kScript + std::string("\0\n"sv), 4, 10);
}

TEST(Encoding, SarifCountsColumnsInUtf16) {
  // Two characters outside of the basic plane: four code units.
  const std::string script =
      replaced(kScript, "loader = ", "s, loader = '\xF0\x9F\x9A\x80\xF0\x9F\x9A\x80', ");
  const auto found = unsharded(script);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].column, 19U);
  const auto run = nlohmann::json::parse(render_sarif(found, {1, false}))["runs"][0];
  const auto& region = run["results"][0]["locations"][0]["physicalLocation"]["region"];
  EXPECT_EQ(region["startColumn"], 21);
  EXPECT_EQ(region["endColumn"], found[0].end_column + 2);
  EXPECT_EQ(run["columnKind"], "utf16CodeUnits");
}

TEST(Encoding, TreesSayThatTheyRanOutOfTime) {
  std::string large;
  for (int i = 0; i < 2'000; ++i) large += "x = f(a, b)[1] + {'k': (y, z)}\n";
  const SyntaxTree tree = SyntaxTree::parse(large, std::chrono::microseconds(1));
  EXPECT_TRUE(tree.timed_out());
  EXPECT_EQ(tree.size(), 1U);
  const SyntaxTree whole = SyntaxTree::parse(large);
  EXPECT_FALSE(whole.timed_out());
  EXPECT_GT(whole.size(), 20'000U);
}

}  // namespace
}  // namespace bench::diagnose
