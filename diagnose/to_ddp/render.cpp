#include "diagnose/to_ddp/rewrite.hpp"

namespace bench::diagnose {
namespace {

// "line 3", "lines 3, 5", "lines 3, 5, utils.py:7": those of the script without its name.
std::string listed(const std::string& script, const std::vector<TouchedLine>& lines) {
  std::string out;
  for (const TouchedLine& each : lines) {
    if (!out.empty()) out += ", ";
    if (each.file != script) out += each.file + ":";
    out += std::to_string(each.line);
  }
  if (lines.front().file != script) return out;
  return (lines.size() > 1 ? "lines " : "line ") + out;
}

constexpr std::size_t kMostPlaces = 8;  // of an entry, which is read as a sentence

// "train.py:3, 9, utils.py:7": a file is named where it begins.
std::string places(const Remaining& left) {
  std::string out = left.line == 0 ? left.file : left.file + ":" + std::to_string(left.line);
  std::string_view file = left.file;
  for (std::size_t i = 0; i < left.also.size(); ++i) {
    const RemainingPlace& each = left.also[i];
    if (i + 1 == kMostPlaces && i + 1 < left.also.size())
      return out + " and " + std::to_string(left.also.size() - i) + " more";
    out += ", " + (each.file == file ? "" : each.file + ":") + std::to_string(each.line);
    file = each.file;
  }
  return out;
}

}  // namespace

std::string render_rewrite(const std::string& file, const Rewrite& rewrite) {
  if (!rewrite.refusal.empty()) return file + ": " + rewrite.refusal + "\n";
  if (rewrite.steps.empty()) return file + ": no DataParallel call to rewrite\n";
  std::string out = file + ": from DataParallel to DistributedDataParallel\n";
  std::size_t number = 0;
  for (const RewriteStep& step : rewrite.steps)
    out += std::to_string(++number) + ". " + step.title + " (" + listed(file, step.lines) +
           "): " + step.why + "\n";
  const bool is_notebook = file.ends_with(".ipynb");
  if (is_notebook)
    out += std::to_string(++number) +
           ". Make it a script, since ranks start from a file: jupyter " +
           "nbconvert --to script " + file + "\n";
  out += std::to_string(++number) + ". Launch it: " + rewrite.launch + "\n";
  if (!rewrite.left.empty()) out += "Left to you, by the lines of the rewritten files:\n";
  for (const Remaining& left : rewrite.left) out += "  " + places(left) + ": " + left.text + "\n";
  return out;
}

}  // namespace bench::diagnose
