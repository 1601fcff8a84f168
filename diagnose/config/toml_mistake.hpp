// Where a TOML file does not parse. Configs of others are read as far as they go; settings of this
// program must be right.
#pragma once

#include <string>

namespace bench::diagnose {

// "bench.toml:3: what is wrong"; empty for a file that parses.
std::string toml_mistake(const std::string& file, const std::string& text);

}  // namespace bench::diagnose
