// The published measurements that ship with the program, as rows of fields.
#pragma once

#include "bench/core/embedded_text.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace bench::simulator {

// Without the header; a quoted field may hold commas. Throws UsageError with file and line where a
// row has not `columns` fields.
std::vector<std::vector<std::string>> csv_rows(const EmbeddedText& file, std::size_t columns);

}  // namespace bench::simulator
