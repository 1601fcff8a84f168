// Where a program reduces or gathers over its ranks, and which function's numbers that serves.
#pragma once

#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

struct Reduction {
  Ref call;
  Ref value;  // what is reduced; empty where that cannot be told
};

// Collectives of the program, what Accelerate gathers and reduces, and calls of helpers elsewhere
// whose name says so.
std::vector<Reduction> reductions_of(const Program& program);

// The body of `from`, or what it calls, runs `to`.
bool enters(const Program& program, diagnose::FunctionRef from, diagnose::FunctionRef to);

// What the evaluation computes may be reduced there: in its function or what that calls, or, where
// its result is, in a caller.
bool serves(const Program& program, const Reduction& reduction, diagnose::FunctionRef evaluation);

// All that leads from the loop's function to the reduction stands above the loop: it is done with
// the figures of something else, as of the training further up.
bool is_above(const Program& program, const Reduction& reduction, Ref loop);

// A collective for a seed or the name of a run, made once, before anything is evaluated. What
// several callers run may come before and after.
bool is_over_before(const Program& program, const Reduction& reduction, Ref loop);

// Something reduces what the loop adds up under this name, or what is made of it, in the loop's
// function or out of it.
bool may_reduce(const Program& program, Ref loop, const std::string& sum,
                const std::vector<Reduction>& reductions);

// What reductions of the function, and helpers it calls that reduce, are given and return.
VariableNames reduced_in(const Program& program, diagnose::FunctionRef function,
                         const std::vector<Reduction>& reductions);

}  // namespace bench::pitfalls
