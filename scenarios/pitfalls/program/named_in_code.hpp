// Names that code uses, and not only imports: what is left over in an import says nothing.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <string_view>

namespace bench::pitfalls::facts {

// A name or a string outside of imports holds the word, in whatever file of the program, or what is
// imported under another name.
bool is_named_in_code(const Program& program, std::string_view word);

}  // namespace bench::pitfalls::facts
