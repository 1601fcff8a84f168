// Branches that the config files of a project never take: `if cfg.optim.grad_clip > 0` where each
// of them says grad_clip: 0.0. A finding there is no mistake of the program as it is shipped, and
// is told as a note. Nothing is found because of such a file, and none makes a finding surer.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <optional>
#include <string>

namespace bench::pitfalls::facts {

// The program may have its settings from files: it imports a reader of such, or speaks of configs.
bool may_read_configs(const Program& program);

// The value of a setting (cfg.a.b, cfg["a"]["b"], args.b, or a name that holds one) that all config
// files of the project agree on, and nothing else in the project contradicts: no launch line or
// document that overrides it, no default of an option, no assignment.
std::optional<diagnose::Value> value_as_configured(const Program& program, Ref setting);

// "grad_clip is 0 in the config files" where a condition around the node, or around every call that
// leads to it, does not hold with those values. Empty where the program comes by.
std::string passed_by_as_configured(const Program& program, Ref node);

// The same of all that starts ranks, in a program that nothing else starts several processes of:
// if cfg.dist.enabled: mp.spawn(...), with config files that say enabled: false.
std::string one_process_as_configured(const Program& program);

// "accumulation is 1 in the config files" where it is; empty otherwise.
std::string one_as_configured(const Program& program, Ref count);

}  // namespace bench::pitfalls::facts
