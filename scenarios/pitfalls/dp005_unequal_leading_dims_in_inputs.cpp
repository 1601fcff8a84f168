#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/laboratory/call_shapes.hpp"

#include <algorithm>

namespace bench::pitfalls {
namespace {

// Of one call: the rows of its tensors, and how many rows of the longest were computed.
struct PairedRows {
  std::vector<std::int64_t> rows;
  std::int64_t longest = 0;
  std::int64_t computed = 0;
};

PairedRows paired_rows(const RunEvidence& run) {
  const CallShapes call = call_shapes(run);
  PairedRows paired;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const std::int64_t rows = leading_dim(call.inputs[i]);
    if (rows == 0) continue;
    paired.rows.push_back(rows);
    if (rows <= paired.longest) continue;
    paired.longest = rows;
    paired.computed = rows_computed(call, i);
  }
  return paired;
}

bool rows_are_left_over(const PairedRows& paired) {
  const auto least = std::min_element(paired.rows.begin(), paired.rows.end());
  return !paired.rows.empty() && *least < paired.longest && paired.computed < paired.longest;
}

// parallel_apply's, where keywords have fewer shards than positional arguments.
constexpr std::string_view kUnpairedKeywords = "is not equal to the number of kwargs_tup";

}  // namespace

void judge_unequal_leading_dims_in_inputs(const RunEvidence& run, RunReport& report) {
  const PairedRows paired = paired_rows(run);
  if (!rows_are_left_over(paired)) return;
  const std::string error = run.error_with(kUnpairedKeywords);
  std::string message = "DataParallel was given tensors of " + listed(paired.rows) + " rows: ";
  message += error.empty() ? std::to_string(paired.computed) + " of " +
                                 std::to_string(paired.longest) + " rows were computed"
                           : "their shards do not pair up";
  Finding& finding = report.add(Confidence::certain, std::move(message));
  finding.help = "Expand them to the batch, or make what all samples share a buffer of the module.";
  finding.evidence.emplace_back("rows", listed(paired.rows));
  if (!error.empty()) finding.evidence.emplace_back("error", error);
}

Price price_unequal_leading_dims_in_inputs(const RunEvidence& broken, const RunEvidence& cured) {
  const PairedRows wrong = paired_rows(broken);
  const PairedRows right = paired_rows(cured);
  const std::string error = broken.error_with(kUnpairedKeywords);
  Price price;
  price.reproduced = wrong.longest > 0 && wrong.computed < wrong.longest;
  price.gone =
      right.longest > 0 && right.computed == right.longest && cured.first("error") == nullptr;
  if (!error.empty()) {
    price.cost = 0;
    price.unit = "steps before the crash";
    price.seen = "AssertionError: " + error;
  } else if (price.reproduced) {
    const auto lost = static_cast<double>(wrong.longest - wrong.computed);
    price.cost = 100 * lost / static_cast<double>(wrong.longest);
    price.unit = "% of the samples never computed";
    price.seen = "silent: " + std::to_string(wrong.computed) + " of " +
                 std::to_string(wrong.longest) + " rows computed";
  }
  return price;
}

}  // namespace bench::pitfalls
