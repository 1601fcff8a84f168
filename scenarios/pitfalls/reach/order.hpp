// In which order two nodes run, and whether one runs wherever the other does.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <functional>

namespace bench::pitfalls {

// `first` runs before `second`, and never after it.
bool only_runs_before(const Program& program, Ref first, Ref second);

// The loop runs the node: it stands in the loop, or in a function that the loop calls.
bool runs_in(const Program& program, Ref loop, Ref node);

// The node, or the call in the subtree that leads to its function; empty where none is known.
Ref place_in(const Program& program, Ref subtree, Ref node);

// facts::exclusive(), also where functions that are called once stand between the two.
bool never_both(const Program& program, Ref a, Ref b);

// Every condition around `node` stands around `other` too, with the same outcome.
bool runs_wherever(const Program& program, Ref node, Ref other);

// The last line above a name or attribute, in the same function, that gives it a value and counts;
// null if none.
const diagnose::Def* last_value_above(Ref object,
                                      const std::function<bool(const diagnose::Def&)>& counts = {});

}  // namespace bench::pitfalls
