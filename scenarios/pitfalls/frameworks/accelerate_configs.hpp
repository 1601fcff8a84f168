// What the launch lines of the script say of Accelerate: their own flags, and the config file that
// `accelerate launch --config_file` names. Other configs of the project are of other runs.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <string>

namespace bench::pitfalls {

// Each line takes DeepSpeed: prepare() gives back an engine, no DDP.
bool is_configured_for_deepspeed(const Program& program);

// "its launch lines start one process of Accelerate" where all of them do; empty otherwise.
std::string one_process_of_accelerate(const Program& program);

// Some line asks for mixed precision, DeepSpeed or accumulation, or names a config, which may.
bool may_scale_by_launch(const Program& program);

}  // namespace bench::pitfalls
