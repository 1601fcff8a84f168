// torch.cuda.set_device() with what is one device for all ranks.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// The expression is built of what the script writes out, and of nothing that a rank, an option or
// the environment may change: f"cuda:{ids[local_rank]}" after ids = [0, 1] and local_rank = 0.
bool is_written_for_all(const Program& program, Ref expression);

// Whether every set_device() call names one device for all ranks, which is reported.
bool check_fixed_binding(const Program& program, Report& report);

}  // namespace bench::pitfalls
