// From the trees of tree-sitter's grammar to ours, with an explicit stack, so that deeply nested
// input costs memory and never the call stack.
#pragma once

#include "diagnose/syntax/grammar.hpp"
#include "diagnose/syntax/plain_parser.hpp"
#include "diagnose/syntax/tree.hpp"

#include <vector>

namespace bench::diagnose {

class TreeBuilder {
 public:
  explicit TreeBuilder(SyntaxTree& tree) : tree_(tree) {}

  void build(const TSTree* parsed);
  void build(const PlainTree& parsed);

  static SyntaxTree parsed(std::string source, bool by_library, std::chrono::microseconds limit);
  // Parsed by tree-sitter alone: what SyntaxTree::parse has to give as well.
  static SyntaxTree by_library(std::string source);

 private:
  struct Level {
    NodeId node;  // where children attach; kNoNode inside what is skipped
    bool own;     // the node was made at this level
    Field inherited = Field::none;
  };

  // A piece whose children are being visited.
  struct Frame {
    std::uint32_t next;  // child, in PlainTree::children
    std::uint32_t end;
    NodeId node;
    bool own;
    bool hidden;  // a symbol of the grammar alone: its children stand in its place
    std::uint16_t production;
    std::uint16_t place = 0;  // of the next child in its production
    TSFieldId field = 0;      // of a hidden piece, which its children have
    Field inherited = Field::none;
  };

  bool lacks_body(NodeId id);
  bool is_string_statement(NodeId id) const;
  void give_body(NodeId block);
  void mend_bodies();
  bool enter(const TSTreeCursor& cursor);
  void visit(const PlainTree& parsed, std::uint32_t child);
  void open(const Piece& piece, const Frame& frame);
  void note_error(TSNode node);
  bool skip(NodeId parent);
  void note_operator(NodeId parent, Op op);
  NodeId add(std::uint32_t begin, std::uint32_t end, Kind kind, Field field, NodeId parent);
  void close(NodeId id);
  void leave();

  SyntaxTree& tree_;
  std::vector<Level> levels_;
  std::vector<Frame> frames_;
};

}  // namespace bench::diagnose
