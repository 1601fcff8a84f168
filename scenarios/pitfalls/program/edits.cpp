#include "scenarios/pitfalls/program/edits.hpp"

#include <algorithm>
#include <utility>

namespace bench::pitfalls {

using diagnose::Edit;
using diagnose::Field;
using diagnose::Fix;
using diagnose::Kind;
using diagnose::kNoNode;
using diagnose::NodeId;

namespace {

std::string_view indentation_of(Ref statement) {
  const auto& tree = statement.module->tree();
  const std::uint32_t begin = tree[statement.node].begin;
  const std::uint32_t start = tree.line_start(tree.line_at(begin));
  return tree.source().substr(start, begin - start);
}

bool only_blanks(std::string_view text) {
  return text.find_first_not_of(" \t\r") == std::string_view::npos;
}

// One more level: what this statement has beyond the one around it, else four spaces.
std::string indentation_step(Ref statement) {
  const std::string_view own = indentation_of(statement);
  return own.find('\t') != std::string_view::npos ? "\t" : "    ";
}

std::string indented(Ref statement, const std::string& text) {
  const std::string lead(indentation_of(statement));
  const std::string step = indentation_step(statement);
  std::string out;
  for (const char c : text) {
    if (c == '\t') {
      out += step;
    } else {
      out += c;
    }
    if (c == '\n') out += lead;
  }
  return out;
}

void attach(Ref where, std::uint32_t begin, std::uint32_t end, std::string text, std::string title,
            Finding& finding) {
  if (!finding.fix) finding.fix = Fix{std::move(title), {}};
  finding.fix->edits.push_back({where.module->path(), begin, end, std::move(text)});
}

// Where the comments begin that stand directly above the first statement of a block, as deep as it:
// they speak of it.
std::uint32_t above_comments(Ref statement) {
  const auto& tree = statement.module->tree();
  const std::string_view source = tree.source();
  const std::string lead(indentation_of(statement));
  std::uint32_t begin = tree[statement.node].begin;
  for (std::uint32_t line = tree.line_at(begin); line > 1; --line) {
    const std::uint32_t above = tree.line_start(line - 1);
    if (!source.substr(above).starts_with(lead + "#")) break;
    begin = above + static_cast<std::uint32_t>(lead.size());
  }
  return begin;
}

// What stands before the node on its line; empty where something else than blanks does.
std::string lead_on_line(const diagnose::SyntaxTree& tree, NodeId node) {
  const std::uint32_t begin = tree[node].begin;
  const std::uint32_t start = tree.line_start(tree.line_at(begin));
  const std::string_view lead = tree.source().substr(start, begin - start);
  return only_blanks(lead) ? std::string(lead) : std::string();
}

// Between two arguments of a call: ", ", or a new line where each of them has one of its own.
std::string between_arguments(const diagnose::SyntaxTree& tree, NodeId list) {
  NodeId last = kNoNode;
  NodeId before = kNoNode;
  for (NodeId at = tree[list].first_child; at != kNoNode; at = tree[at].next_sibling) {
    before = last;
    last = at;
  }
  if (before == kNoNode) return ", ";
  const std::string lead = lead_on_line(tree, last);
  return lead.empty() || lead != lead_on_line(tree, before) ? ", " : ",\n" + lead;
}

bool is_blank(char each) { return each == ' ' || each == '\t'; }

// The argument with its comma, and with its line where it has one of its own; the lines around it
// stay as they are.
std::pair<std::uint32_t, std::uint32_t> span_with_comma(const diagnose::SyntaxTree& tree,
                                                        NodeId list, NodeId argument) {
  const std::string_view source = tree.source();
  std::uint32_t begin = tree[argument].begin;
  std::uint32_t end = tree[argument].end;
  std::uint32_t after = end;
  while (after < tree[list].end && is_blank(source[after])) ++after;
  if (source[after] != ',') {  // the last one: take the comma before it
    while (begin > tree[list].begin &&
           (is_blank(source[begin - 1]) || source[begin - 1] == '\n' || source[begin - 1] == '\r'))
      --begin;
    if (source[begin - 1] == ',') --begin;
    return {begin, end};
  }
  end = after + 1;
  while (end < tree[list].end && is_blank(source[end])) ++end;
  if (source[end] != '\n' && source[end] != '\r') return {begin, end};
  std::uint32_t start = begin;
  while (start > tree[list].begin && is_blank(source[start - 1])) --start;
  if (source[start - 1] != '\n') return {start, end};  // the last one of its line
  end += source[end] == '\r' ? 2 : 1;
  return {start, end};
}

bool holds_long_string(Ref statement) {
  const auto& tree = statement.module->tree();
  for (NodeId at = statement.node; at < tree[statement.node].last; ++at)
    if (tree[at].kind == Kind::string && tree.text(at).find('\n') != std::string_view::npos)
      return true;
  return false;
}

// Each statement of the block goes, too, and this one is the first of them.
bool leaves_the_block_empty(Ref at, const std::vector<Ref>& gone) {
  const auto& tree = at.module->tree();
  const diagnose::NodeId block = tree[at.node].parent;
  if (tree[block].kind != Kind::block || tree[block].first_child != at.node) return false;
  for (auto each = tree[at.node].next_sibling; each != kNoNode; each = tree[each].next_sibling)
    if (std::none_of(gone.begin(), gone.end(), [&](Ref other) {
          return other.module == at.module && statement_of(other).node == each;
        }))
      return false;
  return true;
}

}  // namespace

Ref statement_of(Ref node) {
  const auto& tree = node.module->tree();
  NodeId at = node.node;
  while (tree[at].parent != kNoNode && tree[tree[at].parent].kind != Kind::block &&
         tree[tree[at].parent].kind != Kind::module)
    at = tree[at].parent;
  return node.with(at);
}

void insert_first(Ref block, std::string statement, std::string title, Finding& finding) {
  if (!block) return;
  const Ref first = block.with(block.module->tree()[block.node].first_child);
  if (!first || !only_blanks(indentation_of(first))) return;
  const std::uint32_t begin = above_comments(first);
  attach(first, begin, begin, indented(first, statement + "\n"), std::move(title), finding);
}

void insert_before(Ref node, std::string statement, std::string title, Finding& finding) {
  const Ref at = statement_of(node);
  if (!only_blanks(indentation_of(at))) return;  // several statements on one line
  const std::uint32_t begin = at.module->tree()[at.node].begin;
  attach(at, begin, begin, indented(at, statement + "\n"), std::move(title), finding);
}

void insert_after(Ref node, std::string statement, std::string title, Finding& finding) {
  const Ref at = statement_of(node);
  if (!only_blanks(indentation_of(at))) return;
  const auto& tree = at.module->tree();
  const std::uint32_t end = tree[at.node].end;
  const std::string_view rest = tree.source().substr(end);
  std::string_view line = rest.substr(0, rest.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  std::uint32_t place = end;
  if (const std::size_t word = line.find_first_not_of(" \t"); word != std::string_view::npos) {
    if (line[word] != '#') return;  // another statement behind a semicolon
    place += static_cast<std::uint32_t>(line.size());
  }
  attach(at, place, place, "\n" + std::string(indentation_of(at)) + indented(at, statement),
         std::move(title), finding);
}

bool insert_import(const diagnose::Module& module, const std::string& name, std::string title,
                   Finding& finding) {
  const auto& tree = module.tree();
  for (NodeId at = tree[0].first_child; at != kNoNode; at = tree[at].next_sibling) {
    if (tree[at].kind != Kind::import_statement && tree[at].kind != Kind::import_from) continue;
    if (tree.text(at).starts_with("from __future__")) continue;  // has to stand first
    insert_before({&module, at}, "import " + name, std::move(title), finding);
    return finding.fix.has_value();
  }
  return false;
}

void replace(Ref node, std::string text, std::string title, Finding& finding) {
  const auto& span = node.module->tree()[node.node];
  attach(node, span.begin, span.end, std::move(text), std::move(title), finding);
}

void replace_bytes(Ref node, std::uint32_t begin, std::uint32_t end, std::string text,
                   std::string title, Finding& finding) {
  attach(node, begin, end, std::move(text), std::move(title), finding);
}

void add_argument(const CallRef& call, std::string argument, std::string title, Finding& finding) {
  const auto& tree = call.module->tree();
  const NodeId list = tree.child(call.call->node, Field::arguments);
  if (list == kNoNode || tree[list].kind != Kind::argument_list) return;
  std::uint32_t end = tree[list].begin + 1;
  for (NodeId at = tree[list].first_child; at != kNoNode; at = tree[at].next_sibling)
    end = tree[at].end;
  // A parenthesised last argument ends after its node.
  const std::string_view tail = tree.source().substr(end, tree[list].end - 1 - end);
  if (tail.find_first_of("()#") != std::string_view::npos) return;
  const bool first = tree[list].first_child == kNoNode;
  attach(call.ref(), end, end, (first ? "" : between_arguments(tree, list)) + argument,
         std::move(title), finding);
}

void remove_argument(const CallRef& call, std::string_view keyword, std::string title,
                     Finding& finding) {
  const auto& tree = call.module->tree();
  const NodeId list = tree.child(call.call->node, Field::arguments);
  if (list == kNoNode) return;
  for (NodeId at = tree[list].first_child; at != kNoNode; at = tree[at].next_sibling) {
    if (tree[at].kind != Kind::keyword_argument ||
        tree.text(tree.child(at, Field::name)) != keyword)
      continue;
    const auto [begin, end] = span_with_comma(tree, list, at);
    attach(call.ref(), begin, end, "", std::move(title), finding);
    return;
  }
}

bool starts_its_line(Ref statement) { return only_blanks(indentation_of(statement)); }

bool ends_its_line(Ref statement) {
  const auto& tree = statement.module->tree();
  const std::string_view rest = tree.source().substr(tree[statement.node].end);
  const std::string_view line = rest.substr(0, rest.find('\n'));
  return only_blanks(line.substr(0, line.find('#')));
}

void guard_statements(Ref first, Ref last, std::string_view condition, std::string title,
                      Finding& finding) {
  if (!starts_its_line(first) || holds_long_string(first) || holds_long_string(last) ||
      !ends_its_line(last))
    return;  // the lines of a long string are text; save(); barrier()
  const auto& tree = first.module->tree();
  const std::uint32_t begin = tree[first.node].begin;
  const std::uint32_t end = tree[last.node].end;
  const std::string step = indentation_step(first);
  const std::string_view text = tree.source().substr(begin, end - begin);
  std::string body;
  for (std::size_t i = 0; i < text.size(); ++i) {
    body += text[i];
    const bool is_empty = i + 1 < text.size() && (text[i + 1] == '\n' || text[i + 1] == '\r');
    if (text[i] == '\n' && !is_empty) body += step;
  }
  attach(first, begin, end,
         "if " + std::string(condition) + ":\n" + std::string(indentation_of(first)) + step + body,
         std::move(title), finding);
}

void guard_statement(Ref node, std::string_view condition, std::string title, Finding& finding) {
  const Ref at = statement_of(node);
  if (at.kind() == Kind::expression_statement)
    guard_statements(at, at, condition, std::move(title), finding);
}

void remove_statement(Ref node, std::string title, Finding& finding) {
  remove_statement(node, {node}, std::move(title), finding);
}

void remove_statement(Ref node, const std::vector<Ref>& gone, std::string title, Finding& finding) {
  const Ref at = statement_of(node);
  const auto& tree = at.module->tree();
  const diagnose::Node& span = tree[at.node];
  const bool is_alone = leaves_the_block_empty(at, gone);
  const std::string_view lead = indentation_of(at);
  const std::string_view rest = tree.source().substr(span.end);
  const std::size_t line_end = rest.find('\n');
  if (is_alone || !only_blanks(lead) || line_end == std::string_view::npos ||
      !only_blanks(rest.substr(0, line_end))) {
    attach(at, span.begin, span.end, "pass", std::move(title), finding);
    return;
  }
  const auto begin = span.begin - static_cast<std::uint32_t>(lead.size());
  auto end = span.end + static_cast<std::uint32_t>(line_end) + 1;
  // Of the empty lines on both sides one is enough.
  const std::string_view source = tree.source();
  if (source.substr(0, begin).ends_with("\n\n") && end < source.size() && source[end] == '\n')
    ++end;
  attach(at, begin, end, "", std::move(title), finding);
}

}  // namespace bench::pitfalls
