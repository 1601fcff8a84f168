// The rank of a process group that has ended.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// if is_main_process(): below destroy_process_group(), where is_main_process() says yes without a
// group: the test holds on every rank. Nothing where the node stands under no such test.
bool asks_ended_group(const Program& program, Ref node);

}  // namespace bench::pitfalls
