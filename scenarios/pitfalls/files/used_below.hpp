// What the other ranks do with a file that a guard would leave to the first one: a read, a copy or
// an upload below it finds nothing there, or half of it.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// The last statement that has to stand under one test of the rank with the save: the one that
// saves, or the copy right below it: if is_best: shutil.copyfile(path, best). Empty where no guard
// serves: all ranks use the file further on, with no barrier between, or a caller gives each of
// them one of its own.
Ref last_to_guard(const Program& program, const CallRef& save);

}  // namespace bench::pitfalls
