// Evaluations of which a part is in files that are not there.
#pragma once

#include "scenarios/pitfalls/metrics/metric_sums.hpp"
#include "scenarios/pitfalls/metrics/reductions.hpp"
#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// The predictions that the loop collects go to a function of the project that is not there, which
// makes the figures of them, and may gather them first: log_accs(preds, targets) below
// preds.append(model(x)).
bool is_handed_out_of_sight(const Program& program, Ref loop, const MetricSum& sum);

// psnr = eval_psnr(val_loader, model) of a file that is not there, over one rank's part of the
// data, where each rank saves its best model by it and the program reduces nothing: the calls.
std::vector<CallRef> evaluations_that_choose(const Program& program,
                                             const std::vector<Reduction>& reductions);

}  // namespace bench::pitfalls
