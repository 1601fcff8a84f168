// How wide text is in a terminal: letters of East Asian scripts and emoji take two cells, combining
// marks none.
#pragma once

#include <cstddef>
#include <string_view>

namespace bench::diagnose {

// Cells of the characters [first, last) of a UTF-8 line. Ranges after Unicode's EastAsianWidth.txt
// (classes W and F) and its category Mn of the blocks in use, coarsely: the C library's wcwidth()
// asks the locale, which in containers is "C" and knows none.
std::size_t cells_of(std::string_view line, std::size_t first, std::size_t last);

}  // namespace bench::diagnose
