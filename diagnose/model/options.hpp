// Options of command lines, as argparse declares them.
#pragma once

#include "diagnose/model/program.hpp"

#include <string>

namespace bench::diagnose {

// The attribute that an add_argument(...) call fills: its dest, else its first long option.
std::string attribute_of_option(const CallRef& declaration);

}  // namespace bench::diagnose
