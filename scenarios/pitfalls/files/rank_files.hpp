// Results that go through files, one for each rank.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// The evaluation of the loop writes what it found into a file whose path names the rank, and waits
// for the others or keeps nothing else: one process reads all of them, now or later.
bool goes_through_files(const Program& program, Ref loop);

}  // namespace bench::pitfalls
