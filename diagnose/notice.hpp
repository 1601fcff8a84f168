// What `bench diagnose` has to say on a file apart from findings: that it was not read, that Python
// would not, or that a comment in it silences nothing.
#pragma once

#include <cstdint>
#include <string>

namespace bench::diagnose {

struct Notice {
  std::string file;
  std::string text;        // goes on where "FILE: " ends
  bool unchecked = false;  // no rule has seen the file: no finding does not mean that it is clean
  std::uint32_t line = 0;  // that it is about; 0: the file as a whole
};

}  // namespace bench::diagnose
