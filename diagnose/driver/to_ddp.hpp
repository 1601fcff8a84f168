// The steps that turn a DataParallel script into one for DistributedDataParallel, in order, each
// with the lines it touches and the edits that make it.
#pragma once

#include "diagnose/finding.hpp"
#include "diagnose/model/program.hpp"

#include <string>
#include <vector>

namespace bench::diagnose {

struct RewriteStep {
  std::string title;
  std::string why;
  std::vector<std::uint32_t> lines;
  std::vector<Edit> edits;
};

// Empty when the script has no DataParallel call.
std::vector<RewriteStep> rewrite_to_ddp(const Program& program);

std::string render_steps(const std::string& file, const std::vector<RewriteStep>& steps);

}  // namespace bench::diagnose
