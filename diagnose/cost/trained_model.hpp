// Which model a program trains: the one that its wrappers, its Lightning modules or
// accelerator.prepare() are given, and not any other that it builds beside, as a teacher or a loss.
#pragma once

#include "diagnose/model/program.hpp"

#include <string>

namespace bench::diagnose {

// One of the two at most: neither where the text does not decide, or decides on several.
struct TrainedModel {
  std::string model;      // a name of the model catalogue
  std::string own_class;  // the class of the script
};

// A class of the script around one model of the catalogue is taken for that model, by its name.
TrainedModel trained_model(const Program& program);

}  // namespace bench::diagnose
