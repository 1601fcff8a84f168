// How an entry asks for the rank: where the process group may not be joined yet, dist.get_rank()
// raises.
#pragma once

#include "diagnose/to_ddp/remaining/topics.hpp"

#include <vector>

namespace bench::diagnose {

// Every way to the place leads by init_process_group first.
bool is_joined_above(const Program& program, Ref place);

// One text for the places below init_process_group, and for the others one with a test that works
// above it too.
std::vector<Told> told_by_group(const Program& program, Told told);

// `place` runs below `above` in every run: further down in its function, or called only from there.
bool is_surely_below(const Program& program, Ref above, Ref place);

}  // namespace bench::diagnose
