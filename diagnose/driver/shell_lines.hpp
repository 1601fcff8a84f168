// Where in a shell script a comment may be written: behind lines that end in no quotes, in no
// here-document and with no backslash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace bench::diagnose {

enum class ShellLineEnd : std::uint8_t {
  plain,
  goes_on,    // a backslash joins the next line
  in_quotes,  // or in a here-document: it belongs to a word or to what a command reads
};

// How each line ends, the first one first.
std::vector<ShellLineEnd> shell_line_ends(std::string_view text);

}  // namespace bench::diagnose
