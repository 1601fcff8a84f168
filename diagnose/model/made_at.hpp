// Calls as callers see them: a function that hands back what a call in it gives stands for that
// call where it is called, net = wrap(net, gpu) for `return DDP(net, device_ids=[gpu])`.
#pragma once

#include "diagnose/model/program.hpp"

namespace bench::diagnose {

// The only call of the function that hands the result back, as far up as that goes; the call itself
// where its function does something else with it, or is called in several places.
CallRef made_at(const Program& program, CallRef call);

// The conditions around the call, and around those of made_at() that lead to it.
std::vector<Guard> guards_where_made(const Program& program, CallRef call);

// The node, and the calls that lead to its function where there is only one each.
std::vector<Ref> places_of(const Program& program, Ref node);

// The name that the only caller has for a parameter, as far up as that goes; the name itself where
// it is none.
Ref seen_above(const Program& program, Ref name);

// What the name stands for in a function that leads to its own, each by its only call: the argument
// for a parameter, and the name itself in its own function. Empty for what is not handed down.
Ref seen_in(const Program& program, Ref name, FunctionRef caller);

}  // namespace bench::diagnose
