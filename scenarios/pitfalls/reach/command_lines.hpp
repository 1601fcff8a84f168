// Functions that the command line chooses by their names: fire.Fire() of the whole file.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls::facts {

// A function or method of the script that whoever types the command may call: fire.Fire(), which
// offers all functions of the file, fire.Fire(Trainer), which offers the methods of a class, and
// globals()[args.task](). No other call of it has to be in sight.
bool is_typed_by_name(const Program& program, diagnose::FunctionRef function);

}  // namespace bench::pitfalls::facts
