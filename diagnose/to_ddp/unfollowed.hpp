// A DataParallel call of the project that no call of the script is seen to lead to.
#pragma once

#include "diagnose/to_ddp/reached_code.hpp"

#include <string>

namespace bench::diagnose {

// Where it stands, and where the script looks up code by a name that only a run knows; empty where
// the project has none, or the script surely trains nothing.
std::string unfollowed_wrapper(const Program& program, const ReachedCode& reached);

// The script comes by a call that finds code by a name which a run makes.
bool looks_code_up(const Program& program, const ReachedCode& reached);

}  // namespace bench::diagnose
