// Values of options as the launch lines of a program give them.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <optional>
#include <string>
#include <vector>

namespace bench::pitfalls::facts {

// What the expression is in each launch line that is known, where it comes from one option: the
// value in the line, or the option's default. Empty without launch lines, and where a line has
// words that are not written out ("$@") and may hold the option.
std::vector<diagnose::Value> values_as_launched(const Program& program, Ref expression);

// What the expression is in one launch line: the value in the line of the option that it comes
// from, or else what it is without one ("$@" may hold another). Nothing known where the line names
// the option and its value is not written out.
diagnose::Value value_in_launch(const Program& program, const diagnose::LaunchLine& launch,
                                Ref expression);

// What the option, an add_argument(...) call, is in the line; a switch that the line does not have
// is as its default says, or off. Empty where that is not known: the program may set options in
// other ways, or a word of the line may be short for the option.
std::optional<diagnose::Value> option_in_line(const Program& program, const CallRef& option,
                                              const diagnose::LaunchLine& launch);

// What the line gives the option of these names (--gpus); `unless_given` where it has none of them.
// Empty where the line does not decide it: the value is not written out, or "$@" may hold it.
std::optional<diagnose::Value> value_in_line(const diagnose::LaunchLine& launch,
                                             const std::vector<std::string>& names,
                                             const diagnose::Value& unless_given);

// "$@" and its kin among the words behind the script, which are not the value of an option in
// sight: which options they hold is not known.
bool may_hold_options(const std::vector<diagnose::LaunchWord>& words, std::size_t i);

}  // namespace bench::pitfalls::facts
