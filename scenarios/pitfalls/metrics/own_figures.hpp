// Figures that each rank computes from its own part of the data, and that nothing reduces.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <string>
#include <vector>

namespace bench::pitfalls {

// A collective that runs where such a figure says so: if val_loss < best: ...; dist.barrier().
struct OwnDecision {
  CallRef collective;
  std::string figure;  // as the condition names it
};

std::vector<OwnDecision> collectives_on_own_figures(const Program& program);

}  // namespace bench::pitfalls
