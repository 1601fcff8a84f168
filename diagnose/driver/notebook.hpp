// Notebooks: the code cells as one Python text, with magics and shell lines blanked, and for every
// line of it the line of the .ipynb file where it stands.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bench::diagnose {

struct NotebookSource {
  std::string text;
  std::vector<std::uint32_t> file_lines;  // index: line - 1
};

// A text that is no notebook gives an empty source.
NotebookSource notebook_source(std::string_view json);

}  // namespace bench::diagnose
