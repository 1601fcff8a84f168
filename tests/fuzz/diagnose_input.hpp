// What every fuzzer runs: one input, read as a file that `bench diagnose` accepts, through
// everything that the command can do with it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bench::diagnose {

// Diagnoses the bytes as a script, a notebook, a shell script and a config; renders what is found,
// applies the fixes, rewrites to DDP and explains the Trainer. Nothing may throw, hang or crash,
// and what is found must lie inside the text. Returns the number of findings.
std::size_t run_on_every_kind(std::string_view bytes);

// As a script only: what mutated scripts need.
std::size_t run_as_script(const std::string& text);

// For coverage-guided runs, where one input must be one kind of file: the first byte says which, a
// line "#-- NAME" starts another file of the same program.
std::size_t run_tagged(std::string_view bytes);

// Inputs for run_tagged, one for each case of the rule pages: scripts with the files beside them,
// launch lines, shell scripts, configs.
std::vector<std::string> tagged_seeds();

}  // namespace bench::diagnose
