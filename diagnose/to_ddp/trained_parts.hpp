// What optimizers step: the modules whose parameters they are given, and single parameters.
#pragma once

#include "diagnose/model/program.hpp"

#include <vector>

namespace bench::diagnose {

struct TrainedParts {
  std::vector<Ref> modules;     // net of net.parameters()
  std::vector<Ref> parameters;  // latents after latents = nn.Parameter(...), which are in no module
};

// The first argument of every optimizer, and the groups ({"params": net.parameters()}) that are
// given to one whose class is chosen elsewhere.
std::vector<Ref> given_to_optimizers(const Program& program);

// Through lists, sums of lists, groups, names and functions that sort a module's parameters.
TrainedParts trained_parts(const Program& program, Ref given);

// The same module by another name: one of its sources is one of the other's.
bool shares_source(const Program& program, Ref a, Ref b);

}  // namespace bench::diagnose
