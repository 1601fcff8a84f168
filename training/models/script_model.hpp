// A user's TorchScript file as a Model: what torch.jit.save wrote, trained as it is.
#pragma once

#include "training/models/model.hpp"

#include <memory>

namespace bench::training {

// Loads spec.file on the CPU and runs it once on two samples of spec.input_shape to learn the shape
// of its output. Throws UsageError when the file is missing or something else than TorchScript, has
// nothing to train, or does not accept the input.
std::unique_ptr<Model> load_script_model(const ModelSpec& spec);

}  // namespace bench::training
