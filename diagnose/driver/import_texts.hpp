// What a file imports, by its text alone: asked of many files before any of them is parsed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bench::diagnose {

// Dotted names with their leading dots: "pkg.loop" and "pkg.loop.fit" for
// `from pkg.loop import fit`; of import_module("models.%s.loop" % name) what is written out, with *
// for the rest.
std::vector<std::string> imports_in(std::string_view text);

// The parts between the separators that are not empty.
std::vector<std::string> split(std::string_view text, char separator);

}  // namespace bench::diagnose
