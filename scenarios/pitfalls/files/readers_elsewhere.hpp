// Other files of the project that read the states which a program saves.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// A note where a file takes 'module.' off the keys and loads them.
void soften_if_stripped(const Program& program, Finding& finding);

// The same, and where a script beside this one loads them into a wrapper of its own.
void soften_if_handled_elsewhere(const Program& program, Finding& finding);

}  // namespace bench::pitfalls
