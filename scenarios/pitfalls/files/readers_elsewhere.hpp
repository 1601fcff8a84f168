// Other files of the project that read the states which a program saves.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <optional>
#include <string>

namespace bench::pitfalls {

// test.py of train.py: a script beside this one, which neither trains nor saves the model, wraps it
// and then loads a state into it.
bool is_loaded_beside(const Program& program);

// evaluate.py in whatever folder: a file wraps a model, loads a state into the wrapper, strictly or
// not, and saves none of it.
bool is_loaded_into_wrapper_elsewhere(const Program& program);

// "test.py:38" for the first such load; empty where there is none.
std::string load_into_wrapper_elsewhere(const Program& program);

// test.py of train.py: a file that neither trains nor saves loads a state into a model that it has
// not wrapped, from a path that is not written out, or whose name this program has, too.
bool is_loaded_elsewhere(const Program& program);

// distill.py of train.py: a script that trains loads the state of a model of which it saves none,
// and wraps it in some runs alone.
bool is_loaded_by_other_trainings(const Program& program);

// predict.py of train.py, infer/network.py of train/main.py: a file takes 'module.' off the keys,
// and loads them into the bare model.
bool is_stripped_elsewhere(const Program& program);

// Who reads the keys that a program saves: one answer for all its findings.
class Readers {
 public:
  explicit Readers(const Program& program) : program_(program) {}

  // A note with the reason where nobody may miss the keys: another file takes the prefix off, or
  // loads them into a wrapper, or nothing in the project loads a state into a bare model. Nothing
  // where someone may, where the program saves the inner model's state as well, and of a script
  // that stands alone.
  void soften(Finding& finding);

 private:
  const Program& program_;
  std::optional<std::string> why_;
};

}  // namespace bench::pitfalls
