// Code that mp.spawn runs in new processes, and what only their parent has: names that are given a
// value under the main guard, a process group that it never joined.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// A function that mp.spawn starts runs the node.
bool runs_in_spawned(const Program& program, Ref node);

// Reads of names that the script gives a value only below `if __name__ == "__main__":`, in
// functions that mp.spawn starts or that these call. A child imports the script under another name,
// so that the guard does not hold there. One read for each name.
std::vector<Ref> names_of_parent_alone(const Program& program);

// destroy_process_group() behind mp.spawn, in a parent that has joined no group.
std::vector<CallRef> leaves_of_parent(const Program& program);

}  // namespace bench::pitfalls
