// A plateau schedule that each rank steps with a loss of its own.
#pragma once

#include "scenarios/pitfalls/metrics/reductions.hpp"
#include "scenarios/pitfalls/rule.hpp"

#include <string>
#include <vector>

namespace bench::pitfalls {

struct PlateauStep {
  Ref step;          // scheduler.step(loss)
  std::string name;  // of what the training loop adds up
};

// Steps of ReduceLROnPlateau by every rank whose figure is a sum over that rank's training batches
// and comes to the step by arithmetic alone.
std::vector<PlateauStep> steps_on_own_loss(const Program& program,
                                           const std::vector<Reduction>& reductions);

// Steps by every rank with what this function gives back: the figure of an evaluation of one rank's
// part of the data.
std::vector<CallRef> steps_on_result_of(const Program& program, diagnose::FunctionRef evaluation);

}  // namespace bench::pitfalls
