// What tells one finding from another where lines move: SARIF's partial fingerprints, those of JSON
// and GitLab, and how a baseline knows a finding again.
#pragma once

#include "diagnose/finding.hpp"

#include <map>
#include <string>
#include <string_view>

namespace bench::diagnose {

// FNV-1a over the rule, the file and the text of the line without blanks. The file as it is shown,
// or by another path that stays the same wherever the program runs.
std::string line_fingerprint(const Finding& finding, std::string_view file);

// Of equal lines each has its number ("0123456789abcdef:2"), as the hash alone would be one alert.
class Fingerprints {
 public:
  std::string next(const Finding& finding, std::string_view file);

 private:
  std::map<std::string, int> seen_;
};

}  // namespace bench::diagnose
