// The checks of static evidence, one line a rule. Each lives in the file that is named after it.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

void check_missing_set_epoch(const Program& program, Report& report);

}  // namespace bench::pitfalls
