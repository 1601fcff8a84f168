// Calls that put something on a GPU: the rank has to take its own above them.
#pragma once

#include "diagnose/to_ddp/reached_code.hpp"

#include <vector>

namespace bench::diagnose {

// net.to(device), torch.zeros(3, device=device), Diffusion("cuda"), torch.cuda.FloatTensor(3),
// torch.set_default_tensor_type("torch.cuda.FloatTensor"), of code that the script comes by.
std::vector<CallRef> gpu_uses(const ReachedCode& reached);

}  // namespace bench::diagnose
