// One parsed Python file. Parsing keeps what rules read: parentheses, awaits, type annotations and
// comments leave the tree (comments are kept in a list of their own), operators become Op values.
#pragma once

#include "diagnose/syntax/node.hpp"
#include "diagnose/syntax/trigrams.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bench::diagnose {

struct Position {
  std::uint32_t line = 1;    // 1-based
  std::uint32_t column = 1;  // 1-based, in characters
};

class SyntaxTree {
 public:
  static constexpr std::chrono::microseconds kParseLimit = std::chrono::seconds(5);

  // Never throws on bad Python: what does not parse becomes Kind::error nodes. After the limit the
  // tree is left empty.
  static SyntaxTree parse(std::string source, std::chrono::microseconds limit = kParseLimit);

  std::string_view source() const { return source_; }
  // The text has the word somewhere, be it in a comment.
  bool holds(std::string_view word) const {
    return trigrams_.may_hold(word) && source().find(word) != std::string_view::npos;
  }
  const std::vector<Node>& nodes() const { return nodes_; }
  // A node that is not there reads as one without kind, text, parent and children: broken scripts
  // lack parts that whole ones have.
  const Node& operator[](NodeId id) const { return id < nodes_.size() ? nodes_[id] : kNothing; }
  NodeId size() const { return static_cast<NodeId>(nodes_.size()); }
  bool has_errors() const { return has_errors_; }
  // Where the parser first met what it does not understand; meaningful with has_errors().
  Position first_error() const { return position(first_error_); }
  bool timed_out() const { return timed_out_; }

  std::string_view text(NodeId id) const {
    if (id >= nodes_.size()) return {};
    const Node& node = nodes_[id];
    return std::string_view(source_).substr(node.begin, node.end - node.begin);
  }
  // kNoNode when absent.
  NodeId child(NodeId id, Field field) const {
    if (id >= nodes_.size()) return kNoNode;
    NodeId at = nodes_[id].first_child;
    while (at != kNoNode && nodes_[at].field != field) at = nodes_[at].next_sibling;
    return at;
  }
  NodeId child_at(NodeId id, std::size_t index) const;
  std::size_t child_count(NodeId id) const;
  bool contains(NodeId outer, NodeId inner) const {
    return outer <= inner && inner < (*this)[outer].last;
  }
  // Nearest ancestor (not the node itself) of the kind, or kNoNode.
  NodeId ancestor(NodeId id, Kind kind) const;

  // Value of a plain string literal; nothing for f-strings with holes and for other nodes.
  std::optional<std::string> string_value(NodeId id) const;

  Position position(std::uint32_t byte) const;
  std::uint32_t line_of(NodeId id) const { return line_at((*this)[id].begin); }
  std::uint32_t line_at(std::uint32_t byte) const;
  std::string_view line_text(std::uint32_t line) const;
  std::uint32_t line_count() const { return static_cast<std::uint32_t>(line_starts_.size()); }
  std::uint32_t line_start(std::uint32_t line) const { return line_starts_[line - 1]; }

  struct Comment {
    std::uint32_t begin;
    std::uint32_t end;
  };
  const std::vector<Comment>& comments() const { return comments_; }

 private:
  friend class TreeBuilder;
  static constexpr Node kNothing{};
  std::string source_;
  Trigrams trigrams_;  // of source_
  std::vector<Node> nodes_;
  std::vector<Comment> comments_;
  std::vector<std::uint32_t> line_starts_;
  bool has_errors_ = false;
  std::uint32_t first_error_ = 0;
  bool timed_out_ = false;
};

// The column of a character in UTF-16 code units, both counted from 1: how editors count.
std::uint32_t utf16_column(std::string_view line, std::uint32_t column);

}  // namespace bench::diagnose
