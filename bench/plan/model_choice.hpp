// What was typed after --model: a name of the zoo or a TorchScript file, checked before any work.
#pragma once

#include "bench/core/case.hpp"
#include "bench/plan/settings.hpp"

#include <string>

namespace bench {

// Anything that ends in .pt, .pth or .ts or holds a '/' is a file. Throws UsageError: unknown names
// list the nearest ones; a file must exist, be TorchScript, and come with --input.
ModelSpec choose_model(const std::string& name_or_file, const Settings& settings);

}  // namespace bench
