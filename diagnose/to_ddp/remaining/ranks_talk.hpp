// Whether the ranks of a rewritten program tell each other figures of their own.
#pragma once

#include "diagnose/model/program.hpp"

namespace bench::diagnose {

// Some collective sends or reduces something: whether it is the figure in question is more than can
// be seen. Weights that are sent as they are, which the rewrite itself does, are no figure.
bool ranks_talk(const Program& program);

}  // namespace bench::diagnose
