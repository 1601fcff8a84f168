// How library functions call their parameters, so that an argument is found whether it is given by
// position or by keyword: all_reduce(loss) and all_reduce(tensor=loss).
#pragma once

#include "diagnose/model/module.hpp"

#include <cstddef>
#include <string_view>

namespace bench::diagnose {

// Empty where the call is of no such function, or where the function has no such parameter. A
// method is known by its name, whatever its object.
std::string_view library_parameter(const Module& module, const Call& call, std::size_t index);

}  // namespace bench::diagnose
