// Arithmetic and memory traffic of operators, as a GPU's kernels would have them: floating-point
// operations (a multiply-add is two), bytes read and written once each, kernels launched.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <string>

namespace bench::training {

class BoxedCall;

struct OpCost {
  double flops = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  std::uint16_t launches = 1;
};

// Adds what an operator's name alone tells; `cost` holds the traffic of its tensors already.
using CostRule = void (*)(const BoxedCall& call, c10::ArrayRef<c10::IValue> outputs, OpCost& cost);

// By name without overload; never null: unknown operators count one operation per output element.
CostRule find_cost_rule(const std::string& name);

OpCost operator_cost(const BoxedCall& call, c10::ArrayRef<c10::IValue> outputs);

}  // namespace bench::training
