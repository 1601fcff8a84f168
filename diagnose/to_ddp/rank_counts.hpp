// Whether an expression speaks of the number of ranks or GPUs.
#pragma once

#include "diagnose/model/program.hpp"
#include "scenarios/pitfalls/program/words.hpp"

namespace bench::diagnose {

// batch // dist.get_world_size(), batch // ranks, batch / num_gpus
inline bool counts_ranks(Ref expression) {
  return pitfalls::says_any(expression.text(), {"world", "ranks", "gpu", "device", "replicas"});
}

}  // namespace bench::diagnose
