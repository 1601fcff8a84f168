// Which parser of the command line an option belongs to, and what it does with options it does not
// know.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls::facts {

// parse_known_args() of the parser that the option belongs to. A program may ask another parser
// first, for the name of a configuration file.
bool may_leave_unknown_options(const Program& program, const CallRef& option);

// parse_args() of parsers whose options are all written out, where none is a local rank.
std::vector<CallRef> parsers_without_rank(const Program& program);

}  // namespace bench::pitfalls::facts
