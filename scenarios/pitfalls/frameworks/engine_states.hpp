// What DeepSpeed's engine gives as its state: it holds the model under the name "module".
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// torch.save(engine.state_dict(), path), which nothing loads into an engine again.
std::vector<CallRef> saves_of_engines(const Program& program);

}  // namespace bench::pitfalls
