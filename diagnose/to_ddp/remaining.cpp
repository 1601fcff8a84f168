#include "diagnose/to_ddp/remaining.hpp"

#include <algorithm>
#include <tuple>

namespace bench::diagnose {
namespace {

// The step that launches it says so already.
bool is_said_by_steps(const Finding& finding) { return finding.rule == "LAU001"; }

}  // namespace

std::vector<Remaining> what_remains(const Program& rewritten, const std::vector<Finding>& found) {
  std::vector<Remaining> out;
  for (const Finding& each : found)
    if (each.severity != Severity::info && !is_said_by_steps(each))
      out.push_back({each.file, each.line, each.rule + " " + each.message + ". " + each.help});
  const std::string& script = rewritten.root().path();
  std::stable_sort(out.begin(), out.end(), [&](const Remaining& a, const Remaining& b) {
    return std::make_tuple(a.file != script, a.file, a.line) <
           std::make_tuple(b.file != script, b.file, b.line);
  });
  return out;
}

}  // namespace bench::diagnose
