// What a program trains, as far as its text decides: the model, the batch of its loaders, the
// number of GPUs. Costs are attached only where these are known.
#pragma once

#include "diagnose/model/program.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace bench::diagnose {

struct Workload {
  std::string model;                    // a name of the model catalogue; empty: none, or several
  std::string own_class;                // the class of the script that is trained instead
  std::int64_t batch = 0;               // samples of one loader's batch; 0: not known
  std::int64_t gpus = 0;                // 0: not known
  std::int64_t accumulation = 0;        // micro-batches of a step; 0: not known
  std::optional<double> bucket_cap_mb;  // where it is given
};

Workload workload_of(const Program& program);

}  // namespace bench::diagnose
