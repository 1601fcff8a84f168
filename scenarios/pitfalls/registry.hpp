// All pitfalls, sorted by id. A new one is a line in checks.hpp, a line in registry.cpp and its
// pair of files in CMakeLists.txt.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <span>
#include <string_view>

namespace bench::pitfalls {

std::span<const Rule> all_rules();
const Rule* find_rule(std::string_view id_or_name);  // null when unknown

}  // namespace bench::pitfalls
