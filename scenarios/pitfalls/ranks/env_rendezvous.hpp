// The rendezvous of init_process_group by variables of the environment (env://): which variable a
// call needs, and whether anything sets it.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <string_view>
#include <vector>

namespace bench::pitfalls {

// The variable that the call reads since it is given no value for it: RANK, or MASTER_ADDR where
// rank and world size are given. Empty where it needs none.
std::string_view variable_read(const Program& program, const CallRef& init);

// init_process_group("fake", ...): one process that computes as if it were one of many, and meets
// nobody.
bool is_fake_group(const Program& program, const CallRef& init);

// The program writes the variable, takes it for given, or may have it set by something out of sight
// before `init`: setup_environment(args) of a file that is not there.
bool may_set(const Program& program, std::string_view variable, const CallRef& init);

// Commands in the docstring and the comments of the script, whatever they start.
std::vector<diagnose::LaunchLine> launches_in_text(const Program& program);

// Those that start this script, also under a name that it had before: where all of them start one
// and the same file.
std::vector<diagnose::LaunchLine> own_launches_in_text(const Program& program);

}  // namespace bench::pitfalls
