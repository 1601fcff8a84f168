// The kinds of nodes that a Module keeps a list of. A ListedKind is made from one of these while
// compiling, so that asking a module for the nodes of a kind it keeps no list of does not compile:
// an empty list would read as "the script has none".
#pragma once

#include "diagnose/syntax/node.hpp"

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

}  // namespace bench::diagnose
