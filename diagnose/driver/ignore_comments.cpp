#include "diagnose/driver/ignore_comments.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Where the line's comment begins: the first # that stands in no string. npos without one.
std::size_t comment_of(std::string_view line) {
  char quote = 0;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const char c = line[at];
    if (c == '\\')
      ++at;
    else if (quote != 0)
      quote = c == quote ? char{0} : quote;
    else if (c == '"' || c == '\'')
      quote = c;
    else if (c == '#')
      return at;
  }
  return quote != 0 ? line.find('#') : std::string_view::npos;  // an apostrophe: it's
}

std::vector<std::string_view> listed(std::string_view words) {
  std::vector<std::string_view> out;
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find(','));
    words.remove_prefix(std::min(word.size() + 1, words.size()));
    if (!trimmed(word).empty()) out.push_back(trimmed(word));
  }
  return out;
}

// What begins at a #: what follows `bench: ignore` is nothing or a reason for all rules, [A, B] for
// these. Another word that begins like it (ignored, ignore-next-line) is no mark.
bool read_comment(std::string_view line, std::size_t hash, IgnoreComment& out) {
  const std::size_t mark = line.find_first_not_of(' ', hash + 1);
  if (mark == std::string_view::npos || !line.substr(mark).starts_with(kIgnoreMark)) return false;
  const std::size_t behind = mark + kIgnoreMark.size();
  if (behind < line.size() && line[behind] != ' ' && line[behind] != '[') return false;
  out = {hash};
  const std::size_t open = line.find_first_not_of(' ', behind);
  if (open == std::string_view::npos || line[open] != '[') return true;
  out.has_list = true;
  out.list_begin = open + 1;
  out.list_end = std::min(line.find(']', open), line.size());
  out.rules = listed(line.substr(out.list_begin, out.list_end - out.list_begin));
  return true;
}

bool is_for(const IgnoreComment& comment, const Finding& finding) {
  return !comment.has_list ||
         std::any_of(comment.rules.begin(), comment.rules.end(), [&](std::string_view rule) {
           return rule == finding.rule || rule == finding.name;
         });
}

}  // namespace

std::vector<IgnoreComment> ignore_comments_of(std::string_view line) {
  std::vector<IgnoreComment> out;
  if (line.find(kIgnoreMark) == std::string_view::npos) return out;
  IgnoreComment comment;
  for (std::size_t hash = comment_of(line); hash != std::string_view::npos;
       hash = line.find('#', hash + 1))
    if (read_comment(line, hash, comment)) out.push_back(comment);
  return out;
}

bool is_silenced(std::string_view line, const Finding& finding) {
  const auto comments = ignore_comments_of(line);
  return std::any_of(comments.begin(), comments.end(),
                     [&](const IgnoreComment& comment) { return is_for(comment, finding); });
}

CommentLines::CommentLines(const SyntaxTree& tree) : goes_on_(tree.line_count() + 1, false) {
  for (std::uint32_t line = 1; line <= tree.line_count(); ++line)
    goes_on_[line] = tree.line_text(line).ends_with('\\');
  for (const SyntaxTree::Comment& comment : tree.comments())
    goes_on_[tree.line_at(comment.begin)] = false;
  std::uint32_t done = 0;  // strings within strings are on lines that are marked already
  for (const Node& node : tree.nodes()) {
    if (node.kind != Kind::string || node.end <= done) continue;
    done = node.end;
    const std::uint32_t last = tree.line_at(node.end);
    for (std::uint32_t line = tree.line_at(node.begin); line < last; ++line) goes_on_[line] = true;
  }
}

std::uint32_t CommentLines::line_for(std::uint32_t line) const {
  while (line + 1 < goes_on_.size() && goes_on_[line]) ++line;
  return line;
}

}  // namespace bench::diagnose
