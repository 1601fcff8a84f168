// What a program hands to functions that no file of it defines: they may do with it what they like.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <functional>
#include <vector>

namespace bench::pitfalls {

// Calls of functions out of sight that are given, by place or by name, a value that is accepted.
// What only looks at a value, PyTorch's own functions and those with a meaning of their own here
// (optimizers, wrappers, collectives) are none.
std::vector<CallRef> calls_given(const Program& program,
                                 const std::function<bool(Ref value)>& accepts);

}  // namespace bench::pitfalls
