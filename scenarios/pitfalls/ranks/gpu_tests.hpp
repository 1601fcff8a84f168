// Tests of whether there are GPUs, and whether several.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// The else of `if torch.cuda.is_available()`, also by a name for it, and what stands under
// device.type == "cpu": no run on GPUs comes by.
bool only_without_gpus(const Program& program, Ref node);

// else: model = DataParallel(model), where several GPUs get a process each: made where there is
// one.
bool is_made_for_one_gpu(const Program& program, const diagnose::Wrap& wrap);

}  // namespace bench::pitfalls
