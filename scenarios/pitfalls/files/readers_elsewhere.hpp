// Other files of the project that read the states which a program saves.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <string>

namespace bench::pitfalls {

// test.py of train.py: a script beside this one, which neither trains nor saves the model, wraps it
// and then loads a state into it.
bool is_loaded_beside(const Program& program);

// evaluate.py in whatever folder: a file wraps a model, loads a state into the wrapper, strictly or
// not, and saves none of it.
bool is_loaded_into_wrapper_elsewhere(const Program& program);

// test.py of train.py: a file that neither trains nor saves loads a state into a model that it has
// not wrapped, from a path that is not written out, or whose name this program has, too.
bool is_loaded_elsewhere(const Program& program);

// predict.py of train.py, infer/network.py of train/main.py: a file takes 'module.' off the keys,
// and loads them into the bare model.
bool is_stripped_elsewhere(const Program& program);

// "nothing in the project loads a state into a bare model", or "a file of the project loads it into
// a wrapper": why nobody may miss the keys. Empty where someone may, where the program saves the
// inner model's state as well, and of a script that stands alone.
std::string why_no_bare_reader(const Program& program);

}  // namespace bench::pitfalls
