// Which definitions of a name a use of it can see, by where they stand: above it, in a branch that
// comes by, in the same function.
#pragma once

#include "diagnose/model/module.hpp"

#include <vector>

namespace bench::diagnose {

// The definition stands above the use, and control comes from the one to the other.
bool reaches(const Module& module, const Def& def, NodeId use);

// The definition hides all that stand above it.
bool dominates(const Module& module, const Def& def, NodeId use);

// The statement above `use` that the last of `targets` stands in gives the name one of them on each
// way through it, however its branches nest (a branch that leaves is none): nothing above is seen.
bool every_branch_assigns(const Module& module, const std::vector<NodeId>& targets, NodeId use);

}  // namespace bench::diagnose
