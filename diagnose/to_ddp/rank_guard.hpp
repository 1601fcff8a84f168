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

}  // namespace bench::diagnose
