// Frameworks that start ranks and wrap models on their own.
#pragma once

#include "diagnose/to_ddp/reached_code.hpp"

#include <string>

namespace bench::diagnose {

// "Lightning's Trainer distributes it (line 40): ..." where one of them trains what the script
// runs; empty otherwise.
std::string distributing_framework(const Program& program, const ReachedCode& reached);

}  // namespace bench::diagnose
