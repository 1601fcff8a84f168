// Asks by doing whether a place can be written, before any work whose result is to go there.
#pragma once

#include <filesystem>
#include <string>

namespace bench::cli {

// Writes the file `probe`, which must not exist yet, and removes it again. The reason in the
// system's words where that fails, "" where it works.
std::string why_not_writable(const std::filesystem::path& probe);

// What a probe is named: no two processes share it.
std::string probe_name();

}  // namespace bench::cli
