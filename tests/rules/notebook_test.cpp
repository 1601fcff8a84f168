// Where findings in a notebook stand: in its file, and in its cells, however the file is written.
#include "diagnose/driver/notebook.hpp"

#include "diagnose/driver/diagnose.hpp"
#include "diagnose/driver/notebook_cells.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace bench::diagnose {
namespace {

using Lines = std::vector<std::uint32_t>;

Lines lines_in_file(std::string_view json) {
  Lines out;
  for (const NotebookLine& line : notebook_source(json).lines) out.push_back(line.in_file);
  return out;
}

TEST(Notebook, LinesOfAList) {
  const auto source = notebook_source(R"({
 "cells": [
  {"source": ["# text\n"], "cell_type": "markdown"},
  {"cell_type": "code", "source": [
    "a = 1\n",
    "a = 1\n",
    "b = 2"
  ]}
 ]
})");
  EXPECT_EQ(source.text, "a = 1\na = 1\nb = 2\n");
  ASSERT_EQ(source.lines.size(), 3U);
  EXPECT_EQ(source.lines[1].in_file, 6U);
  EXPECT_EQ(source.lines[2].cell, 2U);
  EXPECT_EQ(source.lines[2].in_cell, 3U);
}

TEST(Notebook, EqualLinesOfTwoCellsKeepTheirPlaces) {
  EXPECT_EQ(lines_in_file("{\"cells\": [\n"
                          "{\"cell_type\": \"code\", \"outputs\": [\"save(a)\"], \"source\": [\n"
                          "\"save(a)\\n\"\n"
                          "]},\n"
                          "{\"cell_type\": \"code\", \"source\": [\n"
                          "\"save(a)\\n\"\n"
                          "]}]}"),
            (Lines{3, 6}));
}

// One string for a cell stands on one line of the file, whatever the cell's lines are.
TEST(Notebook, AStringAsSource) {
  EXPECT_EQ(lines_in_file("{\"cells\": [\n"
                          "{\"cell_type\": \"code\",\n"
                          "\"source\": \"a = 1\\nb = 2\"}]}"),
            (Lines{3, 3}));
}

TEST(Notebook, EscapedLettersAndPartsOfLines) {
  const auto source = notebook_source(
      "{\"cells\": [{\"cell_type\": \"code\", \"source\": [\n"
      "\"\\u0061 = \",\n"
      "\"1\\nb = 2\\n\",\n"
      "\"c = 3\"]}]}");
  EXPECT_EQ(source.text, "a = 1\nb = 2\nc = 3\n");
  EXPECT_EQ(source.line(1).in_file, 2U);
  EXPECT_EQ(source.line(2).in_file, 3U);
  EXPECT_EQ(source.line(3).in_file, 4U);
}

// What only looks like a cell: in the notebook's metadata, in an output, in a list in a list.
TEST(Notebook, OnlyCellsAreRead) {
  EXPECT_TRUE(notebook_source(R"({"metadata": {"cells": [{"cell_type": "code", "source": "a"}]},
    "cells": [[{"cell_type": "code", "source": "b"}], {"cell_type": "code",
               "outputs": [{"source": "c"}], "source": {"source": "d"}}]})")
                  .text.empty());
  EXPECT_TRUE(notebook_cells("[]").empty());
  EXPECT_TRUE(notebook_cells("{\"cells\": [{\"cell_type\": \"code\"").empty());
}

// A file on one line has no places of its own: findings in two cells are two findings.
TEST(Notebook, FindingsOfAFileOnOneLine) {
  const std::string cell =
      R"({"cell_type": "code", "source": ["torch.save(net.state_dict(), 'a.pt')\n"]})";
  const auto findings = diagnose_texts(
      {{"train.ipynb", R"({"cells": [{"cell_type": "code", "source": "import torch\n)"
                       R"(from torch import distributed\n)"
                       R"(distributed.init_process_group('nccl')\nnet = )"
                       R"(torch.nn.parallel.DistributedDataParallel(Net())\n"}, )" +
                           cell + ", " + cell + "]}"}},
      "train.ipynb", {});
  Lines cells;
  for (const Finding& finding : findings)
    if (finding.rule == "DDP039") cells.push_back(finding.cell_line);
  EXPECT_EQ(cells, (Lines{5, 6}));
}

// Python refuses such a cell; the rest of the notebook is read all the same.
TEST(Notebook, ACellMayReturnOutsideOfAFunction) {
  const auto findings =
      diagnose_texts({{"train.py",
                       "import torch.distributed as dist\n"
                       "from torch.nn.parallel import DistributedDataParallel\n"
                       "rank, world_size = dist.get_rank(), dist.get_world_size()\n"
                       "share = total // world_size\n"
                       "first = rank * share\n"
                       "last = total if rank == world_size - 1 else first + share\n"
                       "model = DistributedDataParallel(net)\n"
                       "for x in loader:\n"
                       "    model(x).mean().backward()\n"
                       "return first, last\n"}},
                     "train.py", {});
  for (const Finding& finding : findings) EXPECT_NE(finding.rule, "DDP016");
}

}  // namespace
}  // namespace bench::diagnose
