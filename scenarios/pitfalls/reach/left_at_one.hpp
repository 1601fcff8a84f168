// Counts that a program lets its users raise and that nobody does: --accumulation of default 1, and
// no launch line, config file, document or call that gives more. What costs only where the count is
// larger is a note then.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <string>

namespace bench::pitfalls::facts {

// "accumulation is 1 unless it is set, and nothing here sets more"; empty where something does, or
// where the count is not known to be 1 (or 0) to begin with, or nothing beside the script says how
// it is used.
std::string left_at_one(const Program& program, Ref count);

}  // namespace bench::pitfalls::facts
