// Copies that were put aside: src_backup/train.py beside src/train.py.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls::facts {

// The script lies in a folder of backups, no launch line that is known starts it, and outside of
// that folder there is one of its name that has most of its functions.
bool is_backup(const Program& program);

}  // namespace bench::pitfalls::facts
