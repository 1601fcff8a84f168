// Sums that a loop writes without `+=` and append: total = total + loss.item(),
// preds = torch.cat([preds, out]), scores[i] = out.
#pragma once

#include "scenarios/pitfalls/metrics/metric_sums.hpp"

#include <string>
#include <vector>

namespace bench::pitfalls {

// Variables of before the loop that an assignment in it makes anew out of themselves and something
// else, by arithmetic or by joining.
std::vector<Assigned> self_sums_in(const Program& program, Ref loop);

// What the loop stores item by item in a dictionary or an array that was empty before it.
std::vector<Assigned> stored_items_in(const Program& program, Ref loop);

// for name, out in zip(names, outs): save(out, name): what the loop collects is written sample by
// sample afterwards, and is used for nothing else.
bool is_written_one_by_one(Ref loop, const std::string& name);

}  // namespace bench::pitfalls
