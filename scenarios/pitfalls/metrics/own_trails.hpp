// What a function makes of the figures that its loop adds up.
#pragma once

#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/rule.hpp"

#include <string>
#include <vector>

namespace bench::pitfalls {

// On the way from the loop's sums to the figure in the condition, something may ask other ranks: a
// collective of what is on the way, or a function out of sight that is given it.
bool may_ask_others(const Program& program, Ref loop, const std::vector<MetricSum>& sums,
                    const std::string& figure, Ref condition);

}  // namespace bench::pitfalls
