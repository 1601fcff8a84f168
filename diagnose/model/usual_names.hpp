// What a call of a function that is not at hand gives, by the name that scripts of this kind use
// for nothing else: get_optimizer(config, model), build_lr_scheduler(optimizer).
#pragma once

#include <string_view>

namespace bench::diagnose {

bool names_optimizer_maker(std::string_view function);

// instantiate(cfg.optimizer, ...) of Hydra, and build_from_cfg(cfg.optimizer) of MMEngine: what is
// made has the name of the settings.
bool makes_from_settings(std::string_view function);
bool names_optimizer(std::string_view settings);
bool names_scheduler(std::string_view settings);

// Schedulers of learning rates; the noise schedulers of diffusion models are none.
bool names_scheduler_maker(std::string_view function);

}  // namespace bench::diagnose
