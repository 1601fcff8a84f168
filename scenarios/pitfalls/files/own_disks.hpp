// Where the processes of a job find their files: on one machine, or each on a machine of its own.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// By the program's own words every process is a node, with a disk of its own: what each of them
// writes there is nobody else's.
bool is_process_a_node(const Program& program);

// The path has a part that each process draws for itself and that is nobody else's: a UUID, its
// process id, a clock that counts finer than seconds, a number from a generator nobody seeds.
bool is_drawn_by_each(const Program& program, Ref path);

}  // namespace bench::pitfalls
