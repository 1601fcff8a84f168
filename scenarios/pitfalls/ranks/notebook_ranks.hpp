// Ranks of a notebook: its cells run in one process, unless one of them starts others.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls::facts {

// A notebook that neither starts processes nor joins a group in its own cells. That the library it
// imports could run under a launcher changes nothing for the cells.
bool is_notebook_of_one_process(const Program& program);

}  // namespace bench::pitfalls::facts
