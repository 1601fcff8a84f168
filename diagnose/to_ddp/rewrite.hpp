// A DataParallel script and the files it imports, turned into a program for DDP: the steps in
// order, each with the lines it touches and the edits that make it, and what is left to the user.
#pragma once

#include "diagnose/finding.hpp"
#include "diagnose/model/program.hpp"
#include "diagnose/to_ddp/parts.hpp"
#include "diagnose/to_ddp/remaining.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace bench::diagnose {

struct TouchedLine {
  std::string file;
  std::uint32_t line = 0;  // of the file as it is

  auto operator<=>(const TouchedLine&) const = default;
};

struct RewriteStep {
  std::string title;
  std::string why;
  std::vector<TouchedLine> lines;  // the script's first, ascending
  std::vector<Edit> edits;         // of the files as they are
};

struct Rewrite {
  std::vector<RewriteStep> steps;            // empty where nothing is rewritten
  std::map<std::string, std::string> texts;  // of the files that change, after all steps
  std::vector<Remaining> left;               // by lines of the rewritten files
  std::string launch;                        // the command that starts it
  std::string refusal;  // why nothing is rewritten, although there is a DataParallel call
};

// The program with other texts in place of some files, and what the rules find in it.
using RewrittenVisit =
    std::function<void(const Program& program, const std::vector<Finding>& found)>;
using Rediagnose = std::function<void(const std::map<std::string, std::string>& texts,
                                      const RewrittenVisit& visit)>;

struct StepOptions {
  bool find_unused_parameters = false;  // DDP is told to look for parameters without a gradient
  bool keep_buffers = false;            // and not to copy buffers into place before each pass
};

// The steps without the fixes of rules; empty where the ranks could not meet. `parts` are those of
// the program, with at least one wrapper.
std::vector<RewriteStep> steps_to_ddp(const ReachedCode& reached, const Parts& parts,
                                      const StepOptions& options = {});

// The steps, then the safe fixes of the rules that speak of ranks, which only now have something to
// say: a save on every rank, a load without map_location, set_epoch.
Rewrite rewrite_to_ddp(const Program& program, const Rediagnose& rediagnose);

// For the terminal: numbered steps, the launch line, and what is left to the user. `file` is the
// script.
std::string render_rewrite(const std::string& file, const Rewrite& rewrite);

}  // namespace bench::diagnose
