// What every fuzzer runs: one input, read as each kind of file that `bench diagnose` accepts.
#pragma once

#include <string>
#include <string_view>

namespace bench::diagnose {

// Diagnoses the bytes as a script, a notebook, a shell script and a config; renders what is found,
// applies the fixes and explains the Trainer. Nothing may throw, hang or crash. Returns the number
// of findings.
std::size_t run_on_every_kind(std::string_view bytes);

// As a script only: what mutated scripts need.
std::size_t run_as_script(const std::string& text);

}  // namespace bench::diagnose
