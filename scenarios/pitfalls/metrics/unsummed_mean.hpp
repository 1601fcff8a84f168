// A mean over ranks that is none: the number is divided by the world size, or by the size of the
// whole data set, and nothing sums it up over the ranks before.
#pragma once

#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/rule.hpp"

#include <string>
#include <vector>

namespace bench::pitfalls {

struct UnsummedMean {
  Ref division;
  std::string name;  // what is divided: a number that a loop adds up, or what is made of it

  explicit operator bool() const { return static_cast<bool>(division); }
};

// The first of the function that `loop` stands in. For programs that reduce nothing.
UnsummedMean unsummed_mean(const Program& program, Ref loop);

// All in that function of what the loop adds up over a rank's part of the sampler's data set,
// divided by the length of all of it. For loops whose numbers nothing reduces.
std::vector<UnsummedMean> shares_of_dataset(const Program& program, Ref loop,
                                            const CallRef& sampler);

}  // namespace bench::pitfalls
