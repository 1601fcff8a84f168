// The laboratory's experiments by rule and form; scenarios/pitfalls/laboratory/laboratory.cpp has a
// row for each, which says how to run and judge it.
#pragma once

#include "training/pitfalls/lab.hpp"

#include <span>
#include <string_view>

namespace bench::training {

struct ExperimentRow {
  std::string_view rule;
  void (*run)(Lab&);
};

std::span<const ExperimentRow> experiments();
// Null when unknown. Forms of a rule share their function, which asks Lab::form().
const ExperimentRow* find_experiment(std::string_view rule);

}  // namespace bench::training
