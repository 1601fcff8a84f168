// Applying the edits of findings, and showing them. A fix is applied whole or not at all, edits
// never overlap, and a result that no longer parses is discarded.
#pragma once

#include "diagnose/finding.hpp"

#include <map>
#include <string>
#include <vector>

namespace bench::diagnose {

// File -> new text, for files that change. `texts` holds what the findings were made from.
std::map<std::string, std::string> apply_fixes(const std::vector<Finding>& findings,
                                               const std::map<std::string, std::string>& texts,
                                               std::size_t& applied);

// Applies edits to one text; edits that overlap an earlier one are left out.
std::string apply_edits(const std::string& text, std::vector<Edit> edits);

// A unified diff with three lines of context; empty when nothing differs.
std::string unified_diff(const std::string& file, const std::string& before,
                         const std::string& after);

}  // namespace bench::diagnose
