#include "diagnose/to_ddp/rank_guard.hpp"

#include "diagnose/to_ddp/waits.hpp"
#include "scenarios/pitfalls/files/used_below.hpp"
#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

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

bool put_under_with_copy(const Program& program, const CallRef& save, std::string_view condition,
                         Finding& made) {
  const Ref first = pitfalls::statement_of(save.ref());
  const Ref last = pitfalls::last_to_guard(program, save);
  if (!last || last == first || first.kind() != Kind::expression_statement ||
      first.module->tree()[first.node].first_child != save.call->node)
    return false;
  const std::size_t before = made.fix ? made.fix->edits.size() : 0;
  pitfalls::guard_statements(first, last, std::string(condition), "", made);
  return made.fix && made.fix->edits.size() > before;
}

bool is_used_below(const Program& program, const CallRef& save) {
  const Ref path = save.argument(1, "f");
  if (!path || !program.guards(save.ref()).empty() || !is_come_by_by_all(program, save.ref()))
    return false;
  const CallRef made = program.as_call(path);  // str(path)
  const Ref named = made ? made.positional(0) : path;
  if (!named || named.text().size() < 4) return false;
  const auto& tree = save.module->tree();
  for (NodeId at = tree[pitfalls::statement_of(save.ref()).node].next_sibling; at != kNoNode;
       at = tree[at].next_sibling)
    if (pitfalls::facts::contains(tree.text(at), named.text())) return true;
  return false;
}

}  // namespace bench::diagnose
