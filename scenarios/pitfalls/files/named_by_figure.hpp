// Files whose name holds a figure of the process that writes them.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// f"epoch{epoch}_loss{loss:.4f}.pt" in a program that reduces nothing: no two processes have the
// same figure, so that each of them writes a file of its own.
bool is_named_by_own_figure(const Program& program, const CallRef& save);

}  // namespace bench::pitfalls
