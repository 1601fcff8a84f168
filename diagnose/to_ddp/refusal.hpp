// Programs that are not turned into ones for DDP, although they call DataParallel.
#pragma once

#include "diagnose/model/program.hpp"

#include <string>

namespace bench::diagnose {

// Why the program is left as it is, as half a sentence behind the script's name that also says what
// to do instead; empty where it is rewritten, or calls no DataParallel at all.
std::string reason_to_refuse(const Program& program);

}  // namespace bench::diagnose
