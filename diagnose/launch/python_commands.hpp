// Commands that a Python program has others run: subprocess.run(["torchrun", ...]) and
// os.system("torchrun ..."). Evidence of how the scripts in them are started.
#pragma once

#include "diagnose/launch/launch_line.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace bench::diagnose {

// Words of what starts more than one process; without them nothing here is worth a look.
bool may_hold_commands(std::string_view text);

// Lists and strings that begin as a command does, whichever call they reach. The text is not
// parsed: quotes and brackets are enough to see them.
std::vector<LaunchLine> commands_in_python(const std::string& file, std::string_view text);

}  // namespace bench::diagnose
