// A wrapped model that moves to the CPU to have its state taken, and back to train on.
#pragma once

#include "diagnose/finding.hpp"
#include "diagnose/to_ddp/reached_code.hpp"

#include <vector>

namespace bench::diagnose {

// torch.save(net.module.cpu().state_dict(), path), net.cuda() below it: the parameters lose DDP's
// hooks on the way. Findings whose fix takes copies of the tensors instead.
std::vector<Finding> states_to_copy(const ReachedCode& reached);

}  // namespace bench::diagnose
