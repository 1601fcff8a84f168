// Figures that each rank computes from its own part of the data, and that nothing reduces.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace bench::pitfalls {

// A collective that runs where such a figure says so: if val_loss < best: ...; dist.barrier(). Also
// the call of a helper that brings every rank to one.
struct OwnDecision {
  CallRef call;
  std::string_view collective;  // its name, which is that of the call where that is no helper's
  std::string figure;           // as the condition names it
};

std::vector<OwnDecision> collectives_on_own_figures(const Program& program);

}  // namespace bench::pitfalls
