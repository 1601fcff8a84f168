#include "simulator/published_csv.hpp"

#include "bench/core/error.hpp"

#include <algorithm>

namespace bench::simulator {
namespace {

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

}  // namespace

std::vector<std::vector<std::string>> csv_rows(const EmbeddedText& file, std::size_t columns) {
  std::vector<std::vector<std::string>> rows;
  const std::string text(file.text);
  std::size_t begin = text.find('\n') + 1;  // after the header
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    rows.push_back(fields_of(text.substr(begin, end - begin)));
    if (rows.back().size() != columns) {
      throw UsageError(std::string(file.name) + ":" + std::to_string(rows.size() + 1) +
                       ": expected " + std::to_string(columns) + " columns, found " +
                       std::to_string(rows.back().size()));
    }
    begin = end + 1;
  }
  return rows;
}

}  // namespace bench::simulator
