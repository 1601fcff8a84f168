// Lightning Trainer arguments in YAML, TOML and JSON: below a `trainer:` key, and beside Hydra's
// `_target_: pytorch_lightning.Trainer`.
#pragma once

#include "scenarios/pitfalls/frameworks/trainer.hpp"

#include <vector>

namespace bench::pitfalls::trainer {

// One use for each section that holds such arguments, in the order of the files.
std::vector<Use> uses_in_configs(const Program& program);

}  // namespace bench::pitfalls::trainer
