// What a call of a function that is not at hand gives, by the name that scripts of this kind use
// for nothing else: get_optimizer(config, model), build_lr_scheduler(optimizer).
#pragma once

#include <string_view>

namespace bench::diagnose {

// What is given is the text of the arguments: a class that is named an optimizer is one of a model
// where it is given parameters.
bool names_optimizer_maker(std::string_view function, std::string_view given);

// instantiate(cfg.optimizer, ...) of Hydra, and build_from_cfg(cfg.optimizer) of MMEngine: what is
// made has the name of the settings.
bool makes_from_settings(std::string_view function);
bool names_optimizer(std::string_view settings);
bool names_scheduler(std::string_view settings);

// Schedulers of learning rates are given an optimizer, or named for what they schedule; those of
// noise, of masks, of a loss's weight and of checkpoints are others.
bool is_of_learning_rates(std::string_view name, std::string_view given);
bool names_scheduler_maker(std::string_view function, std::string_view given);

}  // namespace bench::diagnose
