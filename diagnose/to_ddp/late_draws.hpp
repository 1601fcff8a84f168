// Weights that are drawn at random below the wrapper: DDP sends those of rank 0 when it is built,
// and DataParallel had one set of them in any case.
#pragma once

#include "diagnose/finding.hpp"
#include "diagnose/model/program.hpp"

#include <vector>

namespace bench::diagnose {

// init_weights(net) behind net = DDP(net): findings whose fix sends what rank 0 has drawn to all.
// `rewritten` is the program after the steps.
std::vector<Finding> draws_to_send(const Program& rewritten);

}  // namespace bench::diagnose
