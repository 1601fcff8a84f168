// CUDA_VISIBLE_DEVICES as the script sets it, and whether it leaves each rank a GPU of its own.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// The values the program gives CUDA_VISIBLE_DEVICES.
std::vector<Ref> visible_devices(const Program& program);

// ",".join(map(str, args.gpus)): a list for all ranks.
bool joins_several(const Program& program, Ref devices);

// os.environ["CUDA_VISIBLE_DEVICES"] = os.environ["SLURM_LOCALID"]: each rank sees one GPU, its
// own, which is GPU 0 to it.
bool sees_own_gpu(const Program& program);

}  // namespace bench::pitfalls
