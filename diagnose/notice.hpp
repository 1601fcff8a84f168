// What `bench diagnose` has to say on a file apart from findings: that it was not read, or that
// Python would not.
#pragma once

#include <string>

namespace bench::diagnose {

struct Notice {
  std::string file;
  std::string text;        // goes on where "FILE: " ends
  bool unchecked = false;  // no rule has seen the file: no finding does not mean that it is clean
};

}  // namespace bench::diagnose
