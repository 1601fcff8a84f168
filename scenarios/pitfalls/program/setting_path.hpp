// The keys by which an expression asks a configuration: cfg.optim["lr"] asks cfg for optim, then
// lr.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace bench::pitfalls::facts {

struct SettingPath {
  std::vector<std::string> parts;  // the object's name first: cfg, optim, lr
  std::size_t holder = 0;          // index of the last part that is a configuration by its name
  std::vector<Ref> defaults;       // of cfg.get("lr", 0.1), getattr(cfg, "lr", 0.1)
  Ref option;                      // the add_argument(...) call, where a name holds an option

  explicit operator bool() const { return parts.size() > 1; }
  const std::string& key() const { return parts.back(); }
  std::string below_holder() const;  // optim.lr
};

// Empty for expressions that ask no configuration, and for dictionaries that the program writes
// out.
SettingPath setting_path(const Program& program, Ref expression);

// Whether the path means the key at `path` ("optim.lr") of a config file: its last `count` parts
// are those of the key. Keys of config/optim/sgd.yaml may stand below `optim`, and those of
// optim.yaml too.
bool means(const SettingPath& setting, std::size_t count, std::string_view file,
           std::string_view path);

// One part alone means a key below any others only where the object does not tell of another:
// train_cfg["debug"] is not test.debug.
bool may_mean_alone(const SettingPath& setting, std::string_view path);

}  // namespace bench::pitfalls::facts
