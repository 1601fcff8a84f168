#include "diagnose/to_ddp/brackets.hpp"

namespace bench::diagnose {

std::string in_brackets(Ref node, const std::string& text) {
  const auto& tree = node.module->tree();
  switch (tree[tree[node.node].parent].kind) {
    case Kind::assignment:
    case Kind::return_statement:
    case Kind::if_statement:
    case Kind::elif_clause:
    case Kind::argument_list:
    case Kind::keyword_argument:
      return text;
    default:
      return "(" + text + ")";
  }
}

}  // namespace bench::diagnose
