#include "diagnose/driver/ignore_writer.hpp"

#include "diagnose/config/config_entry.hpp"
#include "diagnose/config/toml_mistake.hpp"
#include "diagnose/driver/ignore_comments.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace bench::diagnose {
namespace {

std::string joined(const std::set<std::string>& rules) {
  std::string out;
  for (const std::string& rule : rules) out += (out.empty() ? "" : ", ") + rule;
  return out;
}

bool same_value(const Value& a, const Value& b) {
  return a.type == b.type && a.integer == b.integer && a.string == b.string &&
         a.items.size() == b.items.size() &&
         std::equal(a.items.begin(), a.items.end(), b.items.begin(), same_value);
}

bool same_entries(const std::vector<ConfigEntry>& a, const std::vector<ConfigEntry>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const ConfigEntry& x, const ConfigEntry& y) {
                      return x.path == y.path && x.line == y.line && same_value(x.value, y.value);
                    });
}

}  // namespace

IgnoreWriter::IgnoreWriter(const SourceFile& file, std::string bytes)
    : type_(file.type),
      path_(file.path),
      bytes_(std::move(bytes)),
      source_(to_source_text(bytes_, file.type)) {
  std::size_t begin = 0;
  while (begin <= source_.text.size()) {
    const std::size_t newline = std::min(source_.text.find('\n', begin), source_.text.size());
    const bool carriage = newline > begin && source_.text[newline - 1] == '\r';
    lines_.push_back({begin, newline - (carriage ? 1 : 0)});
    begin = newline + 1;
  }
  if (type_ == FileType::shell) shell_ends_ = shell_line_ends(source_.text);
  if (type_ != FileType::python) return;
  tree_ = SyntaxTree::parse(source_.text);
  comment_lines_.emplace(*tree_);
}

std::string IgnoreWriter::why_not() const {
  switch (type_) {
    case FileType::notebook:
      return "no comment is written into a notebook";
    case FileType::json:
      return "JSON has no comments";
    case FileType::other:
      return "no comment is written into a document";
    default:
      break;
  }
  return source_.same_offsets && source_.readable ? ""
                                                  : "no comment is written where text is not UTF-8";
}

std::string_view IgnoreWriter::text_of(std::uint32_t line) const {
  const Line& at = lines_[line - 1];
  return std::string_view(source_.text).substr(at.begin, at.end - at.begin);
}

std::optional<std::uint32_t> IgnoreWriter::line_for(std::uint32_t line) const {
  if (line == 0 || line > lines_.size()) return std::nullopt;
  if (type_ == FileType::shell) return line_in_shell(line);
  if (!comment_lines_) return line;
  const std::uint32_t found = comment_lines_->line_for(line);
  return found <= lines_.size() ? std::optional(found) : std::nullopt;
}

// Behind the whole command. An empty line that a backslash joins to it belongs to it in name only,
// and would bring the comment's words into it.
std::optional<std::uint32_t> IgnoreWriter::line_in_shell(std::uint32_t line) const {
  std::uint32_t last = line;
  while (last < lines_.size() && shell_ends_[last - 1] == ShellLineEnd::goes_on) ++last;
  const bool is_empty = text_of(last).find_first_not_of(" \t") == std::string_view::npos;
  if (is_empty || shell_ends_[last - 1] != ShellLineEnd::plain) return std::nullopt;
  return last;
}

IgnoreWriter::Insertion IgnoreWriter::insertion(std::uint32_t line,
                                                const std::set<std::string>& rules) const {
  const std::string_view text = text_of(line);
  const std::size_t begin = lines_[line - 1].begin;
  for (const IgnoreComment& comment : ignore_comments_of(text)) {
    if (!comment.has_list) continue;
    std::set<std::string> missing = rules;
    for (const std::string_view rule : comment.rules) missing.erase(std::string(rule));
    std::size_t end = comment.list_end;
    while (end > comment.list_begin && text[end - 1] == ' ') --end;
    const bool is_closed = comment.list_end < text.size();
    return {begin + end, begin + comment.list_end,
            missing.empty()
                ? ""
                : (comment.rules.empty() ? "" : ", ") + joined(missing) + (is_closed ? "" : "]")};
  }
  std::size_t end = text.size();
  while (end > 0 && (text[end - 1] == ' ' || text[end - 1] == '\t')) --end;
  return {begin + end, begin + text.size(),
          (end > 0 ? "  # " : "# ") + std::string(kIgnoreMark) + "[" + joined(rules) + "]"};
}

std::string IgnoreWriter::with(const IgnoresByLine& ignores) const {
  std::string out;
  std::size_t at = 0;
  for (const auto& [line, rules] : ignores) {
    const Insertion each = insertion(line, rules);
    out.append(bytes_, at, each.begin - at).append(each.text);
    at = each.end;
  }
  return out.append(bytes_, at);
}

bool IgnoreWriter::is_sound(const IgnoresByLine& ignores) const {
  const std::string after = to_source_text(with(ignores), type_).text;
  if (type_ == FileType::yaml)
    return same_entries(read_yaml(path_, source_.text), read_yaml(path_, after)) &&
           (yaml_mistake(after).empty() || !yaml_mistake(source_.text).empty());
  if (type_ == FileType::toml)
    return same_entries(read_toml(path_, source_.text), read_toml(path_, after)) &&
           (toml_mistake(path_, after).empty() || !toml_mistake(path_, source_.text).empty());
  if (!tree_) return true;
  const SyntaxTree tree = SyntaxTree::parse(after);
  if (tree.has_errors() && !tree_->has_errors()) return false;
  std::size_t grown = 0;
  for (const auto& [line, rules] : ignores) {
    const Insertion each = insertion(line, rules);
    const std::size_t last = each.begin + grown + each.text.size();  // behind what is written
    grown += each.text.size() - (each.end - each.begin);
    const auto& comments = tree.comments();
    if (std::none_of(comments.begin(), comments.end(), [&](const auto& comment) {
          return comment.begin < last && last <= comment.end;
        }))
      return false;
  }
  return true;
}

}  // namespace bench::diagnose
