// The machine that the flag --machine names.
#pragma once

#include "simulator/machine.hpp"

#include <string>

namespace bench {

// As simulator::load_machine; an error about a name begins with the flag. An error in a file
// begins with the file and the line.
simulator::Machine machine_of_flag(const std::string& value);

}  // namespace bench
