// --output-file must not overwrite what is read: a shell that spells out `--output-file src/*.py`
// names a script.
#pragma once

#include "diagnose/command/flags.hpp"

namespace bench::diagnose {

// Throws UsageError where the output file is a script, is among what is checked, or holds the
// settings or the baseline. What an earlier run wrote may be written again, and so may the script
// whose fixed text comes from standard input.
void check_inputs_are_kept(const Flags& flags);

}  // namespace bench::diagnose
