#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/laboratory/call_shapes.hpp"

#include <cmath>

namespace bench::pitfalls {
namespace {

// The rows that all tensors of a call have; 0 where they differ, or where there are lists of
// tensors, whose rows say nothing.
std::int64_t rows_of_the_batch(const CallShapes& call) {
  std::int64_t rows = 0;
  for (const Json& input : call.inputs) {
    const Json* items = list_items(input);
    if (items != nullptr && !items->empty() && !items->front().is_null()) return 0;
    const std::int64_t own = leading_dim(input);
    if (own == 0) continue;
    if (rows != 0 && own != rows) return 0;
    rows = own;
  }
  return rows;
}

// A loss from each replica is the business of another rule, and right where it is averaged.
bool is_a_number_of_each_replica(const Json& shape, const CallShapes& call) {
  return shape.size() == 1 && leading_dim(shape) == static_cast<std::int64_t>(call.replicas.size());
}

}  // namespace

void judge_output_without_batch_dim(const RunEvidence& run, RunReport& report) {
  const CallShapes call = call_shapes(run);
  const std::int64_t batch = rows_of_the_batch(call);
  if (batch == 0 || call.replicas.size() < 2) return;
  for (const Json& shape : call.outputs) {
    if (leading_dim(shape) == batch || is_a_number_of_each_replica(shape, call)) continue;
    Finding& finding =
        report.add(Confidence::certain,
                   "DataParallel joined the outputs of " + std::to_string(call.replicas.size()) +
                       " replicas to [" + listed(shape) + "] for a batch of " +
                       std::to_string(batch) + ": their first dimension is not the batch");
    finding.help =
        "Return tensors whose first dimension is the batch; compute what depends on the "
        "weights alone outside of the model.";
    finding.evidence.emplace_back("output", listed(shape));
    return;
  }
}

Price price_output_without_batch_dim(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  const double rows = broken.number("rows_compared");
  if (rows > 0) {
    const double apart = broken.number("rows_apart");
    price.reproduced = apart > 0;
    price.gone = cured.number("rows_apart") == 0;
    price.cost = 100 * apart / rows;
    price.unit = "% of the outputs in another sample's place";
    price.seen = "silent: " + figure(apart) + " of " + figure(rows) + " rows out of place";
    return price;
  }
  const double wrong = broken.number("penalty") / broken.number("penalty_of_weights");
  const double right = cured.number("penalty") / cured.number("penalty_of_weights");
  // Float32 sums of a few squares.
  constexpr double kSame = 1e-4;
  price.reproduced = std::abs(wrong - static_cast<double>(broken.gpus())) < kSame;
  price.gone = std::abs(right - 1) < kSame;
  price.cost = wrong;
  price.unit = "times the penalty on the weights";
  price.seen = "silent: the penalty counts " + figure(wrong) + " times";
  return price;
}

}  // namespace bench::pitfalls
