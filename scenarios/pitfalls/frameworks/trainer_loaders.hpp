// The loaders that a class derived from Hugging Face's Trainer makes itself for the training.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// The loader is what get_train_dataloader() of such a class returns, and Trainer.train() goes over
// it as it is. False where the method, another of the class or a class derived from it may still
// split the data, and where train() is the class's own.
bool trainer_goes_over(const Program& program, const CallRef& loader);

}  // namespace bench::pitfalls
