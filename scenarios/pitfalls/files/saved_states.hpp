// What a program writes to files, and the states of objects in it.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// torch.save(...), and save_checkpoint({...}, path) of a file that is not at hand.
std::vector<CallRef> calls_that_save(const Program& program);

// The calls that what is saved is made of, also behind names and the program's own functions: the
// first argument of torch.save; of a helper, whichever holds one.
std::vector<CallRef> calls_saved(const Program& program, const CallRef& save);

// The program saves the state of something to the very path: "net.pt", root + "/net.pt".
bool is_saved_there(const Program& program, Ref path);

}  // namespace bench::pitfalls
