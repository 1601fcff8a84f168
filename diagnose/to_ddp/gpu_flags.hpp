// Names that a program gives to the answer whether it runs on several GPUs, and that its wrapper,
// its checkpoints and others go by.
#pragma once

#include "diagnose/model/program.hpp"

namespace bench::diagnose {

// args.num_gpu > 1 for self.is_parallel after self.is_parallel = args.num_gpu > 1 in the same class
// or function, where the flag is nothing else: what is said there all readers of the flag go by.
// Empty for other conditions.
Ref value_of_flag(const Program& program, Ref condition);

// The condition asks whether there is a process group, or is a flag that does. Also `not flag`.
bool asks_for_group(const Program& program, Ref condition);

// if len(gpus) > 1: net = DDP(net); self.is_parallel = True: the flag says whether there is a
// wrapper in every run. Also `not flag`.
bool follows_wrapper(const Program& program, Ref condition, const Wrap& wrap);

}  // namespace bench::diagnose
