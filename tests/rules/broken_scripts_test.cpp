// Scripts whose blocks lost their indentation, and those that only look so.
#include "diagnose/driver/notebook.hpp"
#include "diagnose/syntax/tree.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace bench::diagnose {
namespace {

// The function that holds the text; kNoNode where it stands in none.
NodeId function_around(const SyntaxTree& tree, std::string_view text) {
  const auto& nodes = tree.nodes();
  const auto found = std::find_if(nodes.begin(), nodes.end(), [&](const Node& node) {
    return node.kind == Kind::call && tree.source().substr(node.begin).starts_with(text);
  });
  return found == nodes.end()
             ? kNoNode
             : tree.ancestor(static_cast<NodeId>(found - nodes.begin()), Kind::function);
}

// Every node lies within its parent, and children follow each other.
void expect_nested(const SyntaxTree& tree) {
  for (NodeId id = 0; id < tree.size(); ++id)
    for (NodeId at = tree[id].first_child; at != kNoNode; at = tree[at].next_sibling) {
      EXPECT_EQ(tree[at].parent, id);
      EXPECT_TRUE(tree.contains(id, at));
      EXPECT_LE(tree[at].end, tree[id].end);
      EXPECT_GE(tree[at].begin, tree[id].begin);
    }
}

TEST(BrokenScripts, ABodyOnTheLevelOfItsDefBelongsToIt) {
  const SyntaxTree tree = SyntaxTree::parse(
      "class Job:\n"
      "    @once\n"
      "    def save(self):\n"
      "    \"\"\"Writes.\"\"\"\n"
      "    write(self.net)\n"
      "\n"
      "    def run(self):\n"
      "        train(self.net)\n"
      "start()\n");
  EXPECT_TRUE(tree.has_errors());
  EXPECT_EQ(tree.first_error().line, 3U);
  EXPECT_TRUE(tree.text(function_around(tree, "write(")).starts_with("def save"));
  EXPECT_TRUE(tree.text(function_around(tree, "train(")).starts_with("def run"));
  EXPECT_EQ(function_around(tree, "start("), kNoNode);
  expect_nested(tree);
}

TEST(BrokenScripts, StatementsOfTheScriptStayWhereTheyAre) {
  const SyntaxTree tree = SyntaxTree::parse(
      "def later():\n"
      "    # to do\n"
      "start()\n"
      "if __name__ == '__main__':\n"
      "    main()\n");
  EXPECT_TRUE(tree.has_errors());
  EXPECT_EQ(function_around(tree, "start("), kNoNode);
  EXPECT_EQ(function_around(tree, "main("), kNoNode);
  expect_nested(tree);
}

TEST(BrokenScripts, ABlockOfMagicsIsWhole) {
  const NotebookSource source = notebook_source(
      R"({"cells": [{"cell_type": "code", "source": ["if colab:\n", "    !pip install x\n",)"
      R"( "%time\n", "start()\n"]}]})");
  const SyntaxTree tree = SyntaxTree::parse(source.text);
  EXPECT_FALSE(tree.has_errors()) << source.text;
}

}  // namespace
}  // namespace bench::diagnose
