// For tables of functions that are given the path of a file.
#pragma once

#include <cstddef>
#include <string_view>

namespace bench::pitfalls {

struct PathOfCall {
  std::string_view name;  // of the function, or its whole path
  std::size_t index;      // of the path among the arguments
  std::string_view keyword;
};

}  // namespace bench::pitfalls
