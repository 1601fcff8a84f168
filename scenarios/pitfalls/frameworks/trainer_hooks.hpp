// Methods of a Trainer of Hugging Face that a script overrides: the library calls them.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <string_view>

namespace bench::pitfalls::facts {

// The class derives from Trainer, and Trainer.train() calls a method of that name, on every
// process: compute_loss, save_model. (_save is called on the process that saves alone; source:
// transformers 4.x and 5.x, trainer.py, Trainer._save_checkpoint and Trainer.save_model.)
bool is_trainer_hook(const Program& program, diagnose::ClassRef cls, std::string_view name);

}  // namespace bench::pitfalls::facts
