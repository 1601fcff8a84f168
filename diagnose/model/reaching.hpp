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

// The last of `targets` stands in a branch of an if that ends above `use`, and each of its other
// branches, else included, has one of the targets too: nothing above the if is seen.
bool every_branch_assigns(const Module& module, const std::vector<NodeId>& targets, NodeId use);

}  // namespace bench::diagnose
