#include "diagnose/driver/fix.hpp"

#include "diagnose/syntax/tree.hpp"

#include <algorithm>
#include <string_view>

namespace bench::diagnose {
namespace {

constexpr std::size_t kContext = 3;
// Cells of the table of common subsequences; a larger middle part becomes one hunk.
constexpr std::size_t kMaxCells = 16'000'000;

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

struct DiffLine {
  char mark;  // ' ', '-' or '+'
  std::string_view text;
};

std::vector<DiffLine> diff_lines(const std::vector<std::string_view>& a,
                                 const std::vector<std::string_view>& b) {
  std::size_t head = 0;
  while (head < a.size() && head < b.size() && a[head] == b[head]) ++head;
  std::size_t tail = 0;
  while (tail + head < a.size() && tail + head < b.size() &&
         a[a.size() - 1 - tail] == b[b.size() - 1 - tail])
    ++tail;
  const std::size_t n = a.size() - head - tail;
  const std::size_t m = b.size() - head - tail;
  std::vector<DiffLine> out;
  for (std::size_t i = 0; i < head; ++i) out.push_back({' ', a[i]});
  std::vector<std::vector<std::uint32_t>> common;
  const bool small = (n + 1) * (m + 1) <= kMaxCells;
  if (small) {
    common.assign(n + 1, std::vector<std::uint32_t>(m + 1, 0));
    for (std::size_t i = n; i-- > 0;)
      for (std::size_t j = m; j-- > 0;)
        common[i][j] = a[head + i] == b[head + j] ? common[i + 1][j + 1] + 1
                                                  : std::max(common[i + 1][j], common[i][j + 1]);
  }
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < n || j < m) {
    if (small && i < n && j < m && a[head + i] == b[head + j]) {
      out.push_back({' ', a[head + i]});
      ++i;
      ++j;
    } else if (i < n && (j == m || !small || common[i + 1][j] >= common[i][j + 1])) {
      out.push_back({'-', a[head + i++]});
    } else {
      out.push_back({'+', b[head + j++]});
    }
  }
  for (std::size_t k = a.size() - tail; k < a.size(); ++k) out.push_back({' ', a[k]});
  return out;
}

void add_hunk(std::string& out, const std::vector<DiffLine>& lines, std::size_t begin,
              std::size_t end) {
  std::size_t before = 1;
  std::size_t after = 1;
  for (std::size_t i = 0; i < begin; ++i) {
    if (lines[i].mark != '+') ++before;
    if (lines[i].mark != '-') ++after;
  }
  std::size_t removed = 0;
  std::size_t added = 0;
  std::string body;
  for (std::size_t i = begin; i < end; ++i) {
    if (lines[i].mark != '+') ++removed;
    if (lines[i].mark != '-') ++added;
    body += lines[i].mark;
    body += lines[i].text;
    if (!lines[i].text.ends_with('\n')) body += "\n\\ No newline at end of file\n";
  }
  out += "@@ -" + std::to_string(before) + "," + std::to_string(removed) + " +" +
         std::to_string(after) + "," + std::to_string(added) + " @@\n" + body;
}

bool overlaps(const std::vector<Edit>& taken, const Edit& edit) {
  return std::any_of(taken.begin(), taken.end(), [&](const Edit& other) {
    if (other.file != edit.file) return false;
    const bool same_insertion =
        other.begin == other.end && edit.begin == edit.end && other.begin == edit.begin;
    if (same_insertion) return other.text == edit.text;
    return edit.begin < other.end && other.begin < edit.end;
  });
}

bool still_parses(const std::string& before, const std::string& after) {
  return !SyntaxTree::parse(after).has_errors() || SyntaxTree::parse(before).has_errors();
}

// What an edit inserts, with the line ends of the file: "\r\n" where its first line has them.
std::string in_line_ends_of(std::string_view file, std::string_view inserted) {
  const std::size_t end = file.find('\n');
  const bool carriage = end != std::string_view::npos && end > 0 && file[end - 1] == '\r';
  std::string out;
  for (std::size_t at = 0; at < inserted.size(); ++at) {
    if (carriage && inserted[at] == '\n' && (at == 0 || inserted[at - 1] != '\r')) out += '\r';
    out += inserted[at];
  }
  return out;
}

// The statement to insert is there already: a finding that a fix did not cure comes again in the
// next round, and the same fix is no cure then either.
bool stands_there(const std::string& text, const Edit& edit) {
  constexpr std::size_t kShortest = 8;  // a bracket or a "not " may well stand beside another
  if (edit.begin != edit.end || edit.text.size() < kShortest || edit.begin > text.size())
    return false;
  const std::string_view all = text;
  const std::string inserted = in_line_ends_of(text, edit.text);
  return all.substr(edit.begin).starts_with(inserted) ||
         all.substr(0, edit.begin).ends_with(inserted);
}

}  // namespace

std::string apply_edits(const std::string& text, std::vector<Edit> edits) {
  std::stable_sort(edits.begin(), edits.end(),
                   [](const Edit& a, const Edit& b) { return a.begin < b.begin; });
  std::string out;
  std::size_t at = 0;
  for (const Edit& edit : edits) {
    if (edit.begin < at || edit.end > text.size()) continue;
    out += text.substr(at, edit.begin - at) + in_line_ends_of(text, edit.text);
    at = edit.end;
  }
  return out + text.substr(at);
}

std::map<std::string, std::string> apply_fixes(const std::vector<Finding>& findings,
                                               const std::map<std::string, std::string>& texts,
                                               std::size_t& applied) {
  std::vector<Edit> taken;
  for (const Finding& finding : findings) {
    if (!finding.fix) continue;
    const auto& edits = finding.fix->edits;
    if (std::any_of(edits.begin(), edits.end(), [&](const Edit& edit) {
          return !texts.contains(edit.file) || overlaps(taken, edit) ||
                 stands_there(texts.at(edit.file), edit);
        }))
      continue;
    // Tried on its own first: one bad edit must not spoil the others.
    std::vector<Edit> tried = taken;
    tried.insert(tried.end(), edits.begin(), edits.end());
    std::vector<Edit> own;
    for (const Edit& edit : tried)
      if (!edits.empty() && edit.file == edits.front().file) own.push_back(edit);
    if (edits.empty()) continue;
    const std::string& text = texts.at(edits.front().file);
    if (!still_parses(text, apply_edits(text, own))) continue;
    taken = std::move(tried);
    ++applied;
  }
  std::map<std::string, std::vector<Edit>> by_file;
  for (Edit& edit : taken) by_file[edit.file].push_back(edit);
  std::map<std::string, std::string> out;
  for (auto& [file, edits] : by_file) out[file] = apply_edits(texts.at(file), std::move(edits));
  return out;
}

std::string unified_diff(const std::string& file, const std::string& before,
                         const std::string& after) {
  const auto a = lines_of(before);
  const auto b = lines_of(after);
  const std::vector<DiffLine> lines = diff_lines(a, b);
  std::string out;
  std::size_t at = 0;
  while (at < lines.size()) {
    if (lines[at].mark == ' ') {
      ++at;
      continue;
    }
    const std::size_t begin = at - std::min(at, kContext);
    std::size_t last = at;
    for (std::size_t i = at; i < lines.size() && i <= last + 2 * kContext; ++i)
      if (lines[i].mark != ' ') last = i;
    const std::size_t end = std::min(last + 1 + kContext, lines.size());
    add_hunk(out, lines, begin, end);
    at = end;
  }
  if (out.empty()) return out;
  // As git does: `patch` takes a name with blanks for a name and a date but for the tab behind it.
  const std::string name = file + (file.find(' ') == std::string::npos ? "\n" : "\t\n");
  return "--- " + name + "+++ " + name + out;
}

}  // namespace bench::diagnose
