// What the symbols and fields of tree-sitter's Python grammar mean to us.
#pragma once

#include "diagnose/syntax/node.hpp"

#include <tree_sitter/api.h>

#include <cstdint>
#include <vector>

extern "C" const TSLanguage* tree_sitter_python();

namespace bench::diagnose {

enum class Treatment : std::uint8_t {
  keep,      // becomes a node
  leaf,      // becomes a node; has no parts
  elide,     // its children take its place
  skip,      // neither it nor what is in it
  comment,   // goes to the list of comments
  string,    // a node whose children are the expressions in its holes
  op_token,  // an operator: noted on the parent
};

struct Meaning {
  Treatment treatment = Treatment::skip;
  Kind kind = Kind::other;
  Op op = Op::none;
};

// By symbol and field number of the grammar; made once.
struct Grammar {
  std::vector<Meaning> meanings;
  std::vector<Field> fields;
  TSFieldId type_field;

  Grammar();
};

const Grammar& grammar();

}  // namespace bench::diagnose
