// Ids that CUDA_VISIBLE_DEVICES was given, and that are then used as if nothing had renumbered
// them.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// The devices of set_device(), torch.device(), .cuda() and DataParallel that are made of the very
// option that the script puts into CUDA_VISIBLE_DEVICES: after that they count from 0.
std::vector<Ref> renumbered_ids(const Program& program);

// The same of what the variable itself says, where whoever starts the script has set it:
// set_device(int(os.environ["CUDA_VISIBLE_DEVICES"].split(",")[local_rank])), by way of names.
std::vector<Ref> ids_read_back(const Program& program);

}  // namespace bench::pitfalls
