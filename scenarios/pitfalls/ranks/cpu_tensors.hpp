// Tensors that lie on the CPU where a collective of NCCL is given them.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// Collectives that NCCL runs for sure: Accelerate's where the script takes GPUs, and those of
// torch.distributed where every group is joined with "nccl". Empty where new tensors may be on a
// GPU by default, or the CPU has a backend of its own.
std::vector<CallRef> nccl_collectives(const Program& program);

// What the collective is given, where it is made of a number without a device:
// torch.tensor(correct). Empty where that is not sure.
Ref sent_from_cpu(const Program& program, const CallRef& collective);

}  // namespace bench::pitfalls
