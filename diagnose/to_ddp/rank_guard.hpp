// Statements put under a test of the rank by insertions alone, so that what else is edited in them
// stays edited.
#pragma once

#include "diagnose/finding.hpp"
#include "diagnose/model/program.hpp"

#include <string_view>

namespace bench::diagnose {

// Puts the expression statement that holds `node` under `if condition:`, one level deeper. False
// where it stands on a line with others, or is no such statement.
bool put_under(Ref node, std::string_view condition, Finding& made);

// if is_best: shutil.copyfile(path, best) right below the save, which nobody else needs.
bool put_under_with_copy(const Program& program, const CallRef& save, std::string_view condition,
                         Finding& made);

// A file that all ranks use below has to be there for them; a wait is right where all come by.
bool is_used_below(const Program& program, const CallRef& save);

}  // namespace bench::diagnose
