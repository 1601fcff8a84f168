// What the fallback knows about an operator: read from its schema once, then looked up by address.
#pragma once

#include "training/devices/op_costs.hpp"
#include "training/devices/shape_rules.hpp"

#include <ATen/core/dispatch/Dispatcher.h>

#include <string>
#include <vector>

namespace bench::training {

enum class ArgumentKind : std::uint8_t { other, tensor, tensor_list, optional_tensor_list, device };

struct OperatorFacts {
  std::string name;      // "aten::addmm", without the overload
  std::string overload;  // "out"
  std::vector<ArgumentKind> arguments;
  std::vector<bool> written;  // by argument: the schema marks it as mutated
  std::size_t return_count = 0;
  bool writes_arguments = false;
  bool takes_cpu_indices = false;  // index operators move CPU indices to the device themselves
  CostRule cost = nullptr;         // op_costs.hpp
  ShapeRule shape = nullptr;       // shape_rules.hpp; null: the Meta kernel, if there is one
  bool has_meta_kernel = false;
};

const OperatorFacts& facts_of(const c10::OperatorHandle& op);

}  // namespace bench::training
