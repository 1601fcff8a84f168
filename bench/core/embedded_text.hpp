// A text file compiled into the program (cmake/EmbedText.cmake): scenarios, machines, rule pages.
#pragma once

#include <span>
#include <string_view>

namespace bench {

struct EmbeddedText {
  std::string_view name;  // file name without its folder, e.g. "dp_vs_ddp.toml"
  std::string_view text;
};

}  // namespace bench
