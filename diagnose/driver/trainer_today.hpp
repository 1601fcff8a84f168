// The arguments of a Lightning 1.x Trainer said in the way of 2.x: what replaces each removed
// argument and value, and the Trainer call that comes out.
#pragma once

#include "scenarios/pitfalls/frameworks/trainer.hpp"

#include <string>
#include <vector>

namespace bench::diagnose {

struct TodaysArgument {
  std::string name;
  Value value;       // unknown: `text` cannot be read as a literal
  std::string text;  // as Python source
};

struct TodaysTrainer {
  std::vector<TodaysArgument> arguments;
  std::vector<std::string> changes;  // one line for each argument that changes, with the reason

  std::string call() const;            // Trainer(accelerator="gpu", devices=2)
  pitfalls::trainer::Use use() const;  // for reading it
};

TodaysTrainer said_today(const pitfalls::trainer::Use& use);

}  // namespace bench::diagnose
