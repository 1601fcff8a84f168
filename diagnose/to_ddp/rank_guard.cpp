#include "diagnose/to_ddp/rank_guard.hpp"

#include "scenarios/pitfalls/program/edits.hpp"

#include <string>

namespace bench::diagnose {
namespace {

// Within a string a line break and the blanks behind it are text.
bool is_in_string(const SyntaxTree& tree, NodeId statement, std::uint32_t at) {
  for (NodeId each = statement; each < tree.size() && tree.contains(statement, each); ++each)
    if (tree[each].kind == Kind::string && tree[each].begin < at && at < tree[each].end)
      return true;
  return false;
}

}  // namespace

bool put_under(Ref node, std::string_view condition, Finding& made) {
  const Ref statement = pitfalls::statement_of(node);
  if (statement.kind() != Kind::expression_statement) return false;
  const auto& tree = statement.module->tree();
  // fit(net, on_end=lambda net: torch.save(net, path)) does more than to save.
  if (tree[statement.node].first_child != node.node) return false;
  const auto& span = tree[statement.node];
  const std::uint32_t line = tree.line_start(tree.line_at(span.begin));
  const std::string lead(tree.source().substr(line, span.begin - line));
  if (!pitfalls::starts_its_line(statement) || !pitfalls::ends_its_line(statement)) return false;
  const std::string step = lead.find('\t') == std::string::npos ? "    " : "\t";
  const auto insert = [&](std::uint32_t at, std::string text) {
    pitfalls::replace_bytes(statement, at, at, std::move(text), "", made);
  };
  insert(span.begin, "if " + std::string(condition) + ":\n" + lead + step);
  for (std::uint32_t at = span.begin; at < span.end; ++at)
    if (tree.source()[at] == '\n' && !is_in_string(tree, statement.node, at) && at + 1 < span.end &&
        tree.source()[at + 1] != '\n')
      insert(at + 1, step);
  return true;
}

}  // namespace bench::diagnose
