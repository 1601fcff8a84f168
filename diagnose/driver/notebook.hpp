// Notebooks: the code cells as one Python text, with magics and shell lines blanked, and for every
// line of it the line of the .ipynb file where it stands, its cell, and the line in that. What the
// cells have a shell do is a text of its own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bench::diagnose {

struct NotebookLine {
  std::uint32_t in_file = 1;
  std::uint32_t cell = 1;     // among all cells, as they follow each other
  std::uint32_t in_cell = 1;  // 1 is the cell's first line
};

struct NotebookSource {
  std::string text;
  std::string commands;             // !torchrun ..., %%bash, %run, line by line as the text
  std::vector<NotebookLine> lines;  // index: line - 1

  // The last line for one behind it.
  NotebookLine line(std::uint32_t number) const;
};

// "cell 3, line 12", for who reads the notebook and not its file.
std::string place_in_notebook(const NotebookLine& line);

// A text that is no notebook gives an empty source.
NotebookSource notebook_source(std::string_view json);

}  // namespace bench::diagnose
