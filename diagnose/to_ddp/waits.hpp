// Where ranks have to wait for a file of rank 0.
#pragma once

#include "diagnose/finding.hpp"
#include "diagnose/to_ddp/reached_code.hpp"

#include <vector>

namespace bench::diagnose {

// Of options alone, and the same for all ranks: args.test, not opts.resume, __name__ == "__main__".
bool is_same_for_all(const Program& program, Ref condition);

// No condition, loop or call on the way to the node is one rank's own: a barrier may stand there.
bool is_come_by_by_all(const Program& program, Ref node);

// torch.load(best) of every rank below a save that rank 0 alone makes now: findings whose fix puts
// a barrier above the load. Only where all ranks surely come by it.
std::vector<Finding> waits_for_saved(const ReachedCode& reached);

}  // namespace bench::diagnose
