// One number of an evaluation is reduced and another beside it is not: loss_sum is returned as it
// is where correct and count go through an all_reduce. Numbers are names, attributes of self and
// items of dictionaries that the loop adds to.
#pragma once

#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/rule.hpp"

#include <string>

namespace bench::pitfalls {

struct ForgottenNumber {
  Ref use;              // the first after the loop
  std::string name;     // what the loop adds to, and nobody reduces
  std::string reduced;  // what it adds to as well, and is reduced

  explicit operator bool() const { return static_cast<bool>(use); }
};

// `reduced` are the variables that reductions of the loop's function are given or return. Empty
// where every number is reduced, none is, or what is left out goes nowhere.
ForgottenNumber forgotten_number(const Program& program, Ref loop, const VariableNames& reduced);

// The same for what a function that evaluates returns, where a caller reduces one part of it and
// not another: loss, accuracy = evaluate(...) and all_reduce(loss). `reduced` are the variables
// that reductions of the caller are given or return.
ForgottenNumber forgotten_result(const Program& program, Ref loop, const CallRef& evaluation,
                                 const VariableNames& reduced);

}  // namespace bench::pitfalls
