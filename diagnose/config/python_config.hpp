// Config files that are Python (configs/resnet50.py): what they assign at their own level, with
// dictionaries flattened: optimizer = dict(type="SGD", lr=0.1) gives optimizer.lr. In functions
// only what is set on an object that is a configuration by name: config.model.depth = 18. A file
// with classes, loops or a __main__ guard is a program, and has no entries.
#pragma once

#include "diagnose/config/config_entry.hpp"

#include <string_view>
#include <vector>

namespace bench::diagnose {

class Module;

// Values that are not written out are unknown, and listed all the same.
std::vector<ConfigEntry> read_python_config(const Module& module);

// cfg, train_args, self.hparams, FLAGS: a configuration by its name.
bool is_config_name(std::string_view name);

}  // namespace bench::diagnose
