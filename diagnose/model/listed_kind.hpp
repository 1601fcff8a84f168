// The kinds of nodes that a Module keeps a list of. A ListedKind is made from one of these while
// compiling, so that asking a module for the nodes of a kind it keeps no list of does not compile:
// an empty list would read as "the script has none".
#pragma once

#include "diagnose/syntax/node.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace bench::diagnose {

// Statement and expression kinds that rules list by kind.
constexpr bool is_listed(Kind kind) {
  switch (kind) {
    case Kind::if_statement:
    case Kind::with_statement:
    case Kind::assert_statement:
    case Kind::try_statement:
    case Kind::continue_statement:
    case Kind::break_statement:
    case Kind::return_statement:
    case Kind::assignment:
    case Kind::augmented_assignment:
    case Kind::decorated:
    case Kind::comparison:
    case Kind::binary:
    case Kind::subscript:
    case Kind::attribute:
    case Kind::list:
    case Kind::wildcard_import:
      return true;
    default:
      return false;
  }
}

class ListedKind {
 public:
  // Implicit, so that nodes_of(Kind::assignment) reads as before.
  consteval ListedKind(Kind kind) : kind_(kind) {
    if (!is_listed(kind)) throw "modules keep no list of this kind: add it to is_listed()";
  }
  constexpr operator Kind() const { return kind_; }

 private:
  Kind kind_;
};

// The nodes of one tree by their kinds, each list in source order, one behind the other.
class NodesByKind {
 public:
  void fill(const std::vector<Node>& nodes) {
    for (const Node& node : nodes)
      if (is_listed(node.kind)) ++ends_[place(node.kind)];
    std::uint32_t begin = 0;
    for (std::uint32_t& end : ends_) {
      const std::uint32_t count = end;
      end = begin;
      begin += count;
    }
    ids_.resize(begin);
    for (NodeId id = 0; id < nodes.size(); ++id)
      if (is_listed(nodes[id].kind)) ids_[ends_[place(nodes[id].kind)]++] = id;
  }

  std::span<const NodeId> of(ListedKind kind) const {
    const std::size_t at = place(kind);
    const std::uint32_t begin = at == 0 ? 0 : ends_[at - 1];
    return std::span(ids_).subspan(begin, ends_[at] - begin);
  }

 private:
  static constexpr std::size_t place(Kind kind) { return static_cast<std::size_t>(kind); }

  std::array<std::uint32_t, static_cast<std::size_t>(Kind::error) + 1> ends_{};  // of the lists
  std::vector<NodeId> ids_;
};

}  // namespace bench::diagnose
