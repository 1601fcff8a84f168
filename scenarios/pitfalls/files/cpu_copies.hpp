// States that are copied to the CPU before they are saved: what loads them puts nothing on a GPU.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// torch.save of {key: value.cpu() for key, value in model.state_dict().items()}, of a list that
// weights.append(layer.weight.to("cpu")) fills, or of a model that was moved: what the program
// writes was on no GPU.
bool saves_from_cpu(const Program& program);

// The same of the scripts of the project that save the state of a model: each of them does so, and
// there is one.
bool project_saves_from_cpu(const Program& program);

}  // namespace bench::pitfalls
