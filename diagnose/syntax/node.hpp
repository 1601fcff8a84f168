// The syntax tree of one Python file in preorder: a flat array that rules can scan without
// recursion, because the subtree of node i is exactly the range [i, nodes[i].last).
#pragma once

#include <cstdint>

namespace bench::diagnose {

using NodeId = std::uint32_t;
inline constexpr NodeId kNoNode = ~NodeId{0};

enum class Kind : std::uint8_t {
  other,
  module,
  import_statement,
  import_from,
  aliased_import,
  dotted_name,
  relative_import,
  wildcard_import,
  expression_statement,
  assignment,
  augmented_assignment,
  named_expression,
  call,
  argument_list,
  keyword_argument,
  list_splat,
  dictionary_splat,
  identifier,
  attribute,
  subscript,
  slice,
  list,
  tuple,
  dictionary,
  set,
  pair,
  string,
  concatenated_string,
  integer,
  floating,
  true_literal,
  false_literal,
  none_literal,
  unary,
  not_expression,
  boolean,
  comparison,
  binary,
  conditional,
  lambda,
  comprehension,
  for_in_clause,
  if_clause,
  function,
  class_definition,
  decorated,
  decorator,
  parameters,
  default_parameter,
  typed_parameter,
  list_splat_parameter,
  dictionary_splat_parameter,
  block,
  if_statement,
  elif_clause,
  else_clause,
  for_statement,
  while_statement,
  with_statement,
  with_item,
  as_pattern,
  try_statement,
  except_clause,
  finally_clause,
  return_statement,
  raise_statement,
  break_statement,
  continue_statement,
  delete_statement,
  assert_statement,
  print_statement,
  yield_expression,
  error,
};

enum class Field : std::uint8_t {
  none,
  alias,
  alternative,
  argument,
  arguments,
  attribute,
  body,
  condition,
  consequence,
  function,
  key,
  left,
  module_name,
  name,
  object,
  parameters,
  right,
  subscript,
  superclasses,
  value,
};

enum class Op : std::uint8_t {
  none,
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  not_in,
  is,
  is_not,
  logical_and,
  logical_or,
  negate,
  bit_and,
  bit_or,
};

struct Node {
  Kind kind = Kind::other;
  Field field = Field::none;  // its role in the parent
  Op op = Op::none;
  std::uint32_t begin = 0;  // bytes in the source
  std::uint32_t end = 0;
  NodeId parent = kNoNode;
  NodeId first_child = kNoNode;
  NodeId next_sibling = kNoNode;
  NodeId last = 0;  // one past the last node of this subtree
};

}  // namespace bench::diagnose
