// The text after --gpus: indices, all (or -1), or the N least used.
#pragma once

#include "bench/plan/devices.hpp"

#include <string>
#include <vector>

namespace bench {

struct GpuList {
  enum class Kind { all, listed, least_used };
  Kind kind = Kind::all;
  std::vector<int> indices;  // listed, in the order given: the first is the primary device
  int count = 0;             // least_used
};

// Throws UsageError. Empty text means all.
GpuList parse_gpu_list(const std::string& text);

// Devices a machine must have for this list; 0 for all.
int gpus_needed(const GpuList& list);

}  // namespace bench
