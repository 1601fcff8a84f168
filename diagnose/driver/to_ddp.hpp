// The steps that turn a DataParallel script into one for DistributedDataParallel, in order, each
// with the lines it touches and the edits that make it.
#pragma once

#include "diagnose/finding.hpp"
#include "diagnose/model/program.hpp"

#include <functional>
#include <string>
#include <vector>

namespace bench::diagnose {

struct RewriteStep {
  std::string title;
  std::string why;
  std::vector<std::uint32_t> lines;  // of the script as it is, ascending
  std::vector<Edit> edits;           // of the script as it is
};

struct Rewrite {
  std::vector<RewriteStep> steps;  // empty where nothing is rewritten
  std::string text;                // the script after all steps
  std::vector<Finding> left;       // what the rules find in `text`, by its lines
  std::string refusal;             // why nothing is, although there is a DataParallel call
};

// What the rules find in a text that stands in place of the script.
using Rediagnose = std::function<std::vector<Finding>(const std::string& text)>;

// The steps without the fixes of rules; empty when the script has no DataParallel call, or joins a
// process group already.
std::vector<RewriteStep> rewrite_to_ddp(const Program& program);

// The steps, then the safe fixes of the rules that speak of ranks, which only now have something to
// say: a save on every rank, a load without map_location, set_epoch.
Rewrite rewrite_and_mend(const Program& program, const Rediagnose& rediagnose);

// For the terminal: numbered steps, the launch line, and what is left to the user.
std::string render_rewrite(const std::string& file, const Rewrite& rewrite);

}  // namespace bench::diagnose
