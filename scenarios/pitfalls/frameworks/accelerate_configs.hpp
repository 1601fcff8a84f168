// What the Accelerate configs that a project ships agree on: accelerate_config.yaml, whatever it is
// called. Nothing is found because of such a file; a finding that it leaves no room for is a note.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <string>

namespace bench::pitfalls {

// All of them take DeepSpeed, and no launch line asks for anything else: prepare() gives back an
// engine, no DDP.
bool is_configured_for_deepspeed(const Program& program);

// "the project's Accelerate config starts one process" where all of them do, and no launch line or
// document asks for more; empty otherwise.
std::string one_process_of_accelerate(const Program& program);

}  // namespace bench::pitfalls
