// One number of an evaluation is reduced and another beside it is not: loss_sum is returned as it
// is where correct and count go through an all_reduce. Numbers are names, attributes of self and
// items of dictionaries that the loop adds to.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <set>
#include <string>

namespace bench::pitfalls {

// The variables of an expression: total, self.total, sums["loss"].
using VariableNames = std::set<std::string>;
VariableNames variables_in(Ref expression);

struct ForgottenNumber {
  Ref use;              // the first after the loop
  std::string name;     // what the loop adds to, and nobody reduces
  std::string reduced;  // what it adds to as well, and is reduced

  explicit operator bool() const { return static_cast<bool>(use); }
};

// `reduced` are the variables that reductions of the loop's function are given or return. Empty
// where every number is reduced, none is, or what is left out goes nowhere.
ForgottenNumber forgotten_number(const Program& program, Ref loop, const VariableNames& reduced);

}  // namespace bench::pitfalls
