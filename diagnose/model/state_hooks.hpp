// accelerator.register_save_state_pre_hook(write_adapter): save_state() runs the hook, in the
// processes that come by there and in no others.
#pragma once

#include "diagnose/model/program.hpp"

#include <vector>

namespace bench::diagnose {

// The place hands a function over as such a hook.
bool is_state_hook(const Program& program, Ref place);

// The calls that run the function as a hook; empty for one that is none.
std::vector<CallRef> runs_of_state_hook(const Program& program, const FunctionRef& function);

}  // namespace bench::diagnose
