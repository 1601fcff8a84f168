// Aligned columns of text for terminals and Markdown. Widths count Unicode code points, which is
// right for everything this program prints.
#pragma once

#include <string>
#include <vector>

namespace bench::report {

struct Column {
  std::string title;
  bool right = true;   // figures align right, names left
  int keep = 0;        // columns with the lowest `keep` leave first when the terminal is narrow
  bool prose = false;  // sentences: HTML wraps them
};

struct TextTable {
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;

  // Removes columns whose cells are all empty or "-".
  void drop_empty_columns();
  // Removes columns, lowest `keep` first, until a line fits; columns with the highest stay.
  void fit(int width);
  // Two spaces between columns, `indent` spaces before each line, a heading line first.
  std::vector<std::string> lines(int indent) const;
  std::string markdown() const;
};

std::size_t display_width(const std::string& utf8);

}  // namespace bench::report
