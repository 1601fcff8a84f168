// Which device a process works on: what binds it to one, and where a call moves something to.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <optional>

namespace bench::pitfalls {

// with torch.cuda.device(rank): ...; as a statement by itself the call makes an object and changes
// nothing.
bool enters_device(const Program& program);

// torch.cuda.set_device and its kin, a device for the process group, or GPUs shown to each process
// by itself.
bool binds_device(const Program& program);

// Where x.cuda() and x.to(device) put x: -1 for the current device, n for a fixed one, nothing for
// devices that may depend on the rank.
std::optional<int> placed_on(const Program& program, const CallRef& call);

// On "cuda", or on that where there is a GPU: torch.device("cuda" if available else "cpu").
bool is_on_current_gpu(const Program& program, const CallRef& placement);

}  // namespace bench::pitfalls
