// Programs that are not turned into ones for DDP, although they call DataParallel.
#pragma once

#include "diagnose/to_ddp/reached_code.hpp"

#include <string>

namespace bench::diagnose {

// Why the program is left as it is, as half a sentence behind the script's name that also says what
// to do instead; empty where it is rewritten, or calls no DataParallel at all. Where no wrapper is
// reached, what the script has of them is counted as reached from here on.
std::string reason_to_refuse(ReachedCode& reached);

// Why a DataParallel call of the script that no line of it comes to is left alone; empty where
// there is none.
std::string wrapper_out_of_reach(const Program& program);

}  // namespace bench::diagnose
