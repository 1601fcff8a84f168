// The model zoo as data, readable without LibTorch (bench list models, plan checks). The factories
// are in training/models; a test checks that both tables agree.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace bench {

struct ModelEntry {
  std::string_view name;
  std::string_view description;
  std::vector<std::int64_t> input_shape;       // one sample
  std::vector<std::int64_t> twin_input_shape;  // one sample of the reduced twin used to verify
  std::int64_t parameter_count;                // trainable parameters, full size
  std::string_view input_dtype = "float32";    // float32 | int64 (token ids)
};

std::span<const ModelEntry> model_catalog();
const ModelEntry* find_model(std::string_view name);  // null when unknown

}  // namespace bench
