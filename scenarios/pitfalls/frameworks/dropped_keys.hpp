// Keys of a configuration that the program takes out before it hands the rest on.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <string>
#include <string_view>

namespace bench::pitfalls::trainer {

// del config["gpus"], config.pop("gpus", None), if key not in ("gpus", "tpu_cores"): what stands
// under the key never comes to the Trainer, whatever the mapping is called there.
bool drops_key(std::string_view text, const std::string& key);

// Some script of the project does so, in a file that speaks of a Trainer.
bool project_drops_key(const Program& program, const std::string& key);

}  // namespace bench::pitfalls::trainer
