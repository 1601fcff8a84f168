// Calls that need the default process group.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

struct GroupUse {
  CallRef call;
  const char* what = "";  // the end of a sentence: "DistributedSampler is built all the same"
};

// Wrappers and samplers that are not told the ranks or the group, and collectives.
std::vector<GroupUse> uses_of_group(const Program& program);

// Both stand in one function, `use` above `other`.
bool stands_above(const Program& program, const GroupUse& use, const GroupUse& other);

}  // namespace bench::pitfalls
