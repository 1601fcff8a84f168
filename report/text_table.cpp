#include "report/text_table.hpp"

#include <algorithm>
#include <numeric>

namespace bench::report {
namespace {

constexpr std::size_t kGap = 2;

std::vector<std::size_t> widths(const TextTable& table) {
  std::vector<std::size_t> result;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    std::size_t width = display_width(table.columns[c].title);
    for (const auto& row : table.rows) width = std::max(width, display_width(row[c]));
    result.push_back(width);
  }
  return result;
}

void remove_column(TextTable& table, std::size_t column) {
  const auto at = static_cast<std::ptrdiff_t>(column);
  table.columns.erase(table.columns.begin() + at);
  for (auto& row : table.rows) row.erase(row.begin() + at);
}

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::string space(width - std::min(width, display_width(text)), ' ');
  return right ? space + text : text + space;
}

std::string escape_markdown(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '|' || c == '\\' || c == '`' || c == '*' || c == '_' || c == '<') result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result;
}

}  // namespace

std::size_t display_width(const std::string& utf8) {
  return static_cast<std::size_t>(std::count_if(utf8.begin(), utf8.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

void TextTable::drop_empty_columns() {
  for (std::size_t c = columns.size(); c-- > 0;) {
    const bool empty = std::all_of(
        rows.begin(), rows.end(), [c](const auto& row) { return row[c].empty() || row[c] == "-"; });
    if (empty && !rows.empty()) remove_column(*this, c);
  }
}

void TextTable::fit(int width) {
  while (columns.size() > 1) {
    const auto all = widths(*this);
    const std::size_t line =
        std::accumulate(all.begin(), all.end(), std::size_t{0}) + kGap * all.size();
    if (line <= static_cast<std::size_t>(std::max(0, width))) return;
    // The last of the least important columns leaves first.
    const auto least =
        std::min_element(columns.rbegin(), columns.rend(),
                         [](const Column& a, const Column& b) { return a.keep < b.keep; });
    const auto most =
        std::max_element(columns.begin(), columns.end(),
                         [](const Column& a, const Column& b) { return a.keep < b.keep; });
    if (least->keep == most->keep) return;
    remove_column(*this, static_cast<std::size_t>(columns.rend() - least) - 1);
  }
}

std::vector<std::string> TextTable::lines(int indent) const {
  const auto all = widths(*this);
  const auto line = [&](const auto& cell) {
    std::string text(static_cast<std::size_t>(indent), ' ');
    for (std::size_t c = 0; c < columns.size(); ++c) {
      if (c > 0) text += std::string(kGap, ' ');
      text += padded(cell(c), all[c], columns[c].right);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };
  std::vector<std::string> result{line([&](std::size_t c) { return columns[c].title; })};
  for (const auto& row : rows) result.push_back(line([&](std::size_t c) { return row[c]; }));
  return result;
}

std::string TextTable::markdown() const {
  std::string head = "|", rule = "|", body;
  for (const Column& column : columns) {
    head += " " + escape_markdown(column.title) + " |";
    rule += column.right ? " ---: |" : " --- |";
  }
  for (const auto& row : rows) {
    body += "|";
    for (const std::string& cell : row) body += " " + escape_markdown(cell) + " |";
    body += "\n";
  }
  return head + "\n" + rule + "\n" + body;
}

}  // namespace bench::report
