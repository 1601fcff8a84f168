// Functions that are called by another name: run = work, model.run = types.MethodType(work, model).
#pragma once

#include "scenarios/pitfalls/reach/switches.hpp"

namespace bench::pitfalls::facts {

// The function gets another name at `place`, and no call of that name leads to where the switches
// stand: each leaves them off, or there is none.
bool is_switched_off_by_other_name(const Program& program, diagnose::FunctionRef function,
                                   const Switches& switches, Ref place);

}  // namespace bench::pitfalls::facts
