// How far off collectives are: every published sweep against what the catalogue makes of it when
// the figure in question is not there. The errors that predictions print come from here.
#pragma once

#include <string>
#include <vector>

namespace bench::simulator {

struct CollectiveCheck {
  std::string method;  // what the figure was made from instead
  std::string curve;   // the published sweep
  int points = 0;
  double mean_error = 0;
  double worst_error = 0;
  double bucket_error = 0;  // mean over 1 to 64 MiB, where DDP's buckets are
};

// Interpolated between the other sizes of the same sweep; scaled from another system's sweep; from
// NCCL's model alone.
std::vector<CollectiveCheck> check_collectives();

}  // namespace bench::simulator
