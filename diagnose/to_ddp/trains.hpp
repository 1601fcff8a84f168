// Whether a program trains, as far as it can be seen.
#pragma once

#include "diagnose/to_ddp/reached_code.hpp"

namespace bench::diagnose {

// The run evaluates, and nothing that it comes by steps an optimizer or may do so out of sight, in
// a file that is not there or a method of an object that nobody knows.
bool surely_trains_nothing(const Program& program, const ReachedCode& reached);

}  // namespace bench::diagnose
