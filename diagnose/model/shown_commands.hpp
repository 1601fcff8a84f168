// Commands that a script shows its reader for starting it: in its docstring, in strings that stand
// there to be read, in comments. Evidence like a README's, and the closest there is to the script.
#pragma once

#include "diagnose/launch/launch_line.hpp"
#include "diagnose/model/module.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace bench::diagnose {

// The name of the place that such a command stands at: that of the script with this behind it, as
// no file is called. What is found there is told only where it is meant for readers.
inline constexpr std::string_view kShownText = "#text";

// The name of the script's file, by which a command starts it: train.py.
std::string_view script_file(const Module& script);

// All of them, at the lines of the script.
std::vector<LaunchLine> shown_commands(const Module& script);

// Those that start this script by its name.
std::vector<LaunchLine> own_shown_commands(const Module& script);

}  // namespace bench::diagnose
