// The names under which one object goes: opts in keep(opts) after keep(args), args in a method
// after args = self.args. Attributes that one function sets are read through another name
// elsewhere.
#pragma once

#include "diagnose/model/program.hpp"

#include <string_view>
#include <vector>

namespace bench::diagnose {

// The expression's own text first, then the names it came by; `self` is none of them.
std::vector<std::string_view> names_of(const Program& program, Ref object);

}  // namespace bench::diagnose
