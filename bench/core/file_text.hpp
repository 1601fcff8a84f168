// The bytes of a file the user named. Whoever asks says what the file was to be, so there is no
// error here.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace bench {

// Nothing where there is no such file, where it cannot be read, or where it is a directory.
std::optional<std::string> file_text(const std::filesystem::path& path);

}  // namespace bench
