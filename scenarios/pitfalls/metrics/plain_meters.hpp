// Meters that average what one process gives them, and ask no other.
#pragma once

#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// losses.update(loss.item(), n) in the loop, where losses is an AverageMeter: of another file by
// its usual names, or of a class of this program that calls no collective.
std::vector<Assigned> meter_sums_in(const Program& program, Ref loop);

// What the object adds up stays with its process: a usual meter, or an object of a class of this
// program that calls no collective. An evaluator of another file may ask other ranks in the end.
bool adds_up_alone(const Program& program, Ref object);

}  // namespace bench::pitfalls
