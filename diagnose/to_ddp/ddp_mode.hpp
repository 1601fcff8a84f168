// What a program has of DDP already, and how its mode for it is started.
#pragma once

#include "diagnose/to_ddp/reached_code.hpp"

#include <string>

namespace bench::diagnose {

// "joins a process group already (utils/dist.py:21): start it with torchrun, in the mode that
// --distributed chooses"; empty where the script comes by nothing of DDP.
std::string existing_ddp_mode(const Program& program, const ReachedCode& reached);

// "(line 4)" in the script, "(utils/dist.py:21)" elsewhere.
std::string place_in_brackets(const Program& program, Ref node);

}  // namespace bench::diagnose
