// A mean over ranks that is none: the number is divided by the world size, and nothing sums it up
// over the ranks before.
#pragma once

#include "scenarios/pitfalls/metric_sums.hpp"
#include "scenarios/pitfalls/rule.hpp"

#include <string>

namespace bench::pitfalls {

struct UnsummedMean {
  Ref division;
  std::string name;  // what is divided: a number that a loop adds up, or what is made of it

  explicit operator bool() const { return static_cast<bool>(division); }
};

// The first of the function that `loop` stands in. For programs that reduce nothing.
UnsummedMean unsummed_mean(const Program& program, Ref loop);

}  // namespace bench::pitfalls
