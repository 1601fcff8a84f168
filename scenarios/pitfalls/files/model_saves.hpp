// Calls that write a model, or what a run is resumed from, to a file.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

std::vector<CallRef> torch_saves_of(const Program& program);

// torch.save(state, path), scripted.save(path), after scripted = torch.jit.script(model),
// ddp.module.save_pretrained(path), and what exports a model.
std::vector<CallRef> saves_of(const Program& program);

// The path, or the open file, that one of these is given; empty where none can be seen.
Ref path_of(const CallRef& save);

}  // namespace bench::pitfalls
