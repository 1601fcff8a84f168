// The subcommands of this room: `bench diagnose` and `bench explain`.
#pragma once

#include <string>
#include <vector>

namespace bench::diagnose {

int diagnose_command(const std::vector<std::string>& arguments);
int explain_command(const std::vector<std::string>& arguments);

}  // namespace bench::diagnose
