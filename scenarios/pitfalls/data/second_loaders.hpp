// Training loops that draw from several loaders: zip(labelled, unlabelled), and next(it) of another
// one in the loop over the first.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// Those that a pass of the loop goes over from their beginning: what it iterates, and what zip()
// puts beside it.
std::vector<CallRef> loaders_passed_over(const Program& program,
                                         const diagnose::TrainingLoop& loop);

// All loaders that the batches of the loop come from, each once.
std::vector<CallRef> loaders_of_training(const Program& program,
                                         const diagnose::TrainingLoop& loop);

}  // namespace bench::pitfalls
