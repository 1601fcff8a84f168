// Forward passes below the wrapper in the methods that Trainer.train() calls: part of DDP007.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// model.module(...), model.module.encode(...) and calls of what unwrap_model(model) gives back, on
// the way to the loss of compute_loss(self, model, inputs) and training_step of a subclass of
// Hugging Face's Trainer, which hands over the DDP wrapper. Empty where the wrapper itself is
// called beside it, where another engine (DeepSpeed, FSDP) reduces the gradients, and where the
// script asks first whether there is a wrapper.
std::vector<CallRef> hooks_below_wrapper(const Program& program);

}  // namespace bench::pitfalls
