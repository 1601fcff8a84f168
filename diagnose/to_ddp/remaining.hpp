// What a rewritten program still needs from its author: what no edit can decide.
#pragma once

#include "diagnose/finding.hpp"
#include "diagnose/to_ddp/reached_code.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace bench::diagnose {

struct RemainingPlace {
  std::string file;
  std::uint32_t line = 0;  // of the rewritten file

  auto operator<=>(const RemainingPlace&) const = default;
};

struct Remaining {
  std::string file;
  std::uint32_t line = 0;  // of the rewritten file; 0 where it is about the program
  std::string text;  // what is left, why, and what to do; with the rule's id where one says so
  std::vector<RemainingPlace> also;  // other lines of which the same is true
};

// `reached` is of the program after all steps, `found` what the rules say of it, `ranks` how many
// processes the launch line starts, 0 where it leaves that open. What stops or
// corrupts training comes first, then what makes wrong figures, then waste; within each the script
// first, by lines.
std::vector<Remaining> what_remains(const ReachedCode& reached, const std::vector<Finding>& found,
                                    std::int64_t ranks = 0);

}  // namespace bench::diagnose
