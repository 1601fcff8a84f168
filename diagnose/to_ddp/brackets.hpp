// Texts that are put in the place of an expression.
#pragma once

#include "diagnose/model/program.hpp"

#include <string>

namespace bench::diagnose {

// The text, in brackets where what stands around the node would take a part of it alone.
std::string in_brackets(Ref node, const std::string& text);

}  // namespace bench::diagnose
