// The shapes of one DataParallel call in a run's evidence ("inputs", "replica_inputs", "outputs"):
// what the rules on its arguments and outputs have in common.
#pragma once

#include "scenarios/pitfalls/laboratory/run_evidence.hpp"

#include <cstdint>
#include <vector>

namespace bench::pitfalls {

// A shape as evidence has it: an array of sizes, {"list": [...]} or null.
struct CallShapes {
  std::vector<Json> inputs;
  std::vector<std::vector<Json>> replicas;  // the same arguments as each replica saw them
  std::vector<Json> outputs;                // all tensors that came back
};

// Empty where the run shows no such call, or one on fewer than two GPUs.
CallShapes call_shapes(const RunEvidence& run);

// Sizes along dimension 0; 0 for what is not a tensor with dimensions.
std::int64_t leading_dim(const Json& shape);
// The items of a list; null for anything else.
const Json* list_items(const Json& shape);
// Rows of this argument that the replicas computed, all together.
std::int64_t rows_computed(const CallShapes& call, std::size_t argument);

}  // namespace bench::pitfalls
