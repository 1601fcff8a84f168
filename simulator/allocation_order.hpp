// The canonical order of a recording's allocations: it does not depend on how threads interleaved
// while recording, and edits keep it, so that an edited graph can equal a recorded one.
#pragma once

#include "simulator/operation_graph.hpp"

#include <algorithm>
#include <tuple>
#include <vector>

namespace bench::simulator {

inline void sort_allocations(std::vector<Allocation>& allocations) {
  const auto key = [](const Allocation& a) {
    return std::tie(a.alloc_op, a.free_op, a.device, a.category, a.bytes);
  };
  std::sort(allocations.begin(), allocations.end(),
            [&](const Allocation& a, const Allocation& b) { return key(a) < key(b); });
}

}  // namespace bench::simulator
