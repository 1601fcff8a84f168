// Where the figure of an evaluation is made of what its loop has added up: the place where the sums
// of all ranks are wanted, and where an author looks for the all-reduce.
#pragma once

#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// The first statement below the loop, in its function, that computes with the sum, tells it or
// gives it back: `loss = total / len(loader)`, `return meter.avg`. Lists that are only joined first
// (`preds = torch.cat(preds)`) are followed. Where the function does nothing more with it, as with
// attributes that another method reads, the place that adds.
Ref figure_made_at(const Program& program, Ref loop, const MetricSum& sum);

}  // namespace bench::pitfalls
