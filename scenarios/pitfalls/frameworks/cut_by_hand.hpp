// Scripts that cut the repeated samples of the last batch off themselves, as those for Accelerate
// did before gather_for_metrics.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// predictions[: len(loader.dataset) - seen] in the function of the gather, where some round comes
// to it: i == len(loader) holds in no round of enumerate(loader).
bool cuts_repeated_samples(const Program& program, const CallRef& gather);

}  // namespace bench::pitfalls
