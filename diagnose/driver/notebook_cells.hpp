// The cells of a notebook as they stand in its file: their code, and the line of the file on which
// each line of it begins.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bench::diagnose {

struct CellLine {
  std::string text;           // without its line feed
  std::uint32_t in_file = 1;  // line of the .ipynb file, 1-based
};

struct NotebookCell {
  bool is_code = false;
  std::vector<CellLine> lines;
};

// All cells in their order. What is no JSON, or no notebook of format 4, has none.
std::vector<NotebookCell> notebook_cells(std::string_view json);

}  // namespace bench::diagnose
