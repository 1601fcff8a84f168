// Launch lines in what lies beside a script and is none itself: commands that a README shows,
// recipes of a Makefile, the command of a Dockerfile, configurations of an editor. They are
// evidence of how a script is started; nothing is reported about them.
#pragma once

#include "diagnose/launch/launch_line.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bench::diagnose {

enum class LaunchDocument : std::uint8_t { none, shell, readme, makefile, dockerfile, editor };

// By the file's name alone.
LaunchDocument launch_document(std::string_view path);

// A text without these words holds no launch line.
bool may_hold_launches(std::string_view text);

std::vector<LaunchLine> read_launch_document(const std::string& file, std::string_view text);

}  // namespace bench::diagnose
