// What a program does to the keys of states: "module." put before them or taken off.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// By its words the program changes the prefix of keys.
bool changes_keys(const Program& program);

// state = fix_legacy_dict(torch.load(path)) of a file that is not at hand: by its name it may
// change the keys.
bool is_mended_out_of_sight(const Program& program);

}  // namespace bench::pitfalls
