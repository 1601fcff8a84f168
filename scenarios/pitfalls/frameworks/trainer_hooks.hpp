// Methods of a Trainer of Hugging Face that a script overrides: the library calls them.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <string_view>

namespace bench::pitfalls::facts {

// The class derives from Trainer, and Trainer.train() calls a method of that name, on every
// process: compute_loss, save_model, _save_checkpoint. (_save is called on the process that saves
// alone; source: transformers 4.x and 5.x, trainer.py, Trainer._save_checkpoint and
// Trainer.save_model.)
bool is_trainer_hook(const Program& program, diagnose::ClassRef cls, std::string_view name);

// model of def compute_loss(self, model, inputs) and of training_step: the wrapper, as the Trainer
// hands it over while it trains. (prediction_step gets the bare model.)
bool is_model_of_hook(const Program& program, Ref model);

// The Trainer's own engine, DeepSpeed or FSDP, may stand in the wrapper's place.
bool may_have_another_engine(const Program& program);

// self.get_eval_dataloader() of such a class, trainer.get_test_dataloader(), the loader that
// evaluation_loop() is given: one that gives each process its own part of the data.
bool is_loader_of_trainer(const Program& program, Ref iterable);

}  // namespace bench::pitfalls::facts
