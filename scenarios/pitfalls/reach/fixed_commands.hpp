// Command lines that a script writes out for itself: parser.parse_args(["--data", "b"]).
#pragma once

#include "diagnose/launch/launch_line.hpp"
#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls::facts {

// The words that each parse_args() of the program is given in place of those of the command line,
// as a line that starts the script. Empty where one of them reads the command line, or is given
// words that are not written out.
std::vector<diagnose::LaunchLine> fixed_commands(const Program& program);

}  // namespace bench::pitfalls::facts
