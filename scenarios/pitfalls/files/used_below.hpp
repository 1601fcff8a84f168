// What the other ranks do with a file that a guard would leave to the first one: a read, a copy or
// an upload below it finds nothing there, or half of it.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// The last statement of a run, beginning with the one that saves, that has to stand under one test
// of the rank; the saving statement itself where nothing below uses the file. Empty where no guard
// serves: the ranks use the file further on, or a caller gives each of them one of its own.
Ref last_to_guard(const Program& program, const CallRef& save);

}  // namespace bench::pitfalls
