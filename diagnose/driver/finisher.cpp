#include "diagnose/driver/finisher.hpp"

#include "diagnose/cost/cost.hpp"
#include "diagnose/driver/notebook.hpp"

#include <algorithm>
#include <charconv>

namespace bench::diagnose {
namespace {

const Module* module_at(const Program& program, const std::string& path) {
  for (const Module* candidate : program.modules())
    if (candidate->path() == path) return candidate;
  return nullptr;
}

Utf16Region region_of(const SyntaxTree& tree, const Edit& edit) {
  const auto place = [&](std::uint32_t byte) {
    const Position at = tree.position(byte);
    return Position{at.line, utf16_column(tree.line_text(at.line), at.column)};
  };
  const Position begin = place(edit.begin);
  const Position end = place(edit.end);
  return {begin.line, begin.column, end.line, end.column};
}

bool has_evidence(const Finding& finding, std::string_view name) {
  return std::any_of(finding.evidence.begin(), finding.evidence.end(),
                     [&](const auto& each) { return each.first == name; });
}

std::uint32_t number_of(std::string_view text) {
  std::uint32_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

std::vector<Finding> Finisher::finish(const Program& program, std::vector<Finding> found) const {
  std::vector<Finding> kept;
  LinesByModule lines;
  for (Finding& finding : found) {
    const Module* module = module_at(program, finding.file);
    if (module != nullptr && module->tree().size() > 1) {
      finding.excerpt = module->tree().line_text(finding.line);
    } else if (finding.file != kLaunchOption) {
      finding.excerpt = line_of_file(finding.file, finding.line);
    }
    // First, so that what a comment silences does not depend on what else is hidden.
    if (is_silenced(module, finding, lines)) continue;
    if (!options_.selection.shows(finding.severity, finding.confidence)) continue;
    if (options_.ignores(finding.file, finding.rule)) continue;
    locate(program, finding);
    if (finding.file.ends_with(".ipynb")) map_notebook(finding);
    kept.push_back(std::move(finding));
  }
  attach_costs(program, kept);
  return kept;
}

bool Finisher::is_silenced_by(const Finding& finding, std::uint32_t line,
                              std::string_view text) const {
  const bool silenced = diagnose::is_silenced(text, finding);
  if (silenced) used_.note(finding.file, line, finding.rule);
  return silenced;
}

bool Finisher::is_silenced(const Module* module, const Finding& finding,
                           LinesByModule& lines) const {
  if (is_silenced_by(finding, finding.line, finding.excerpt)) return true;
  if (type_of(finding.file) == FileType::shell || shells_.contains(finding.file))
    return is_silenced_in_shell(finding);
  if (module == nullptr || !module->tree().holds(kIgnoreMark)) return false;
  const CommentLines& comments = lines.try_emplace(module, module->tree()).first->second;
  const std::uint32_t line = comments.line_for(finding.line);
  return line != finding.line && is_silenced_by(finding, line, module->tree().line_text(line));
}

// A shell command that goes on over several lines has no room for a comment but behind its last
// line, and in a comment of its own above its first.
bool Finisher::is_silenced_in_shell(const Finding& finding) const {
  const auto goes_on = [&](std::uint32_t line) {
    return line > 0 && line_of_file(finding.file, line).ends_with('\\');
  };
  std::uint32_t first = finding.line;
  std::uint32_t last = finding.line;
  while (goes_on(first - 1)) --first;
  while (goes_on(last)) ++last;
  if (is_silenced_by(finding, last, line_of_file(finding.file, last))) return true;
  if (first == 1) return false;
  const std::string above = line_of_file(finding.file, first - 1);
  const std::size_t begin = above.find_first_not_of(" \t");
  return begin != std::string::npos && above[begin] == '#' &&
         is_silenced_by(finding, first - 1, above);
}

std::string Finisher::line_of_file(const std::string& file, std::uint32_t line) const {
  const auto text = cache_.read(file);
  if (!text) return {};
  std::size_t at = 0;
  for (std::uint32_t i = 1; i < line && at != std::string::npos; ++i) {
    at = text->find('\n', at);
    if (at != std::string::npos) ++at;
  }
  if (at == std::string::npos) return {};
  std::string found = text->substr(at, text->find('\n', at) - at);
  if (found.ends_with('\r')) found.pop_back();
  return found;
}

// Findings lie on one line, their excerpt. Where the text was decoded, its offsets are not those of
// the file, and no edit is offered.
void Finisher::locate(const Program& program, Finding& finding) const {
  finding.region = {finding.line, utf16_column(finding.excerpt, finding.column), finding.end_line,
                    utf16_column(finding.excerpt, finding.end_column)};
  if (!finding.fix) return;
  for (Edit& edit : finding.fix->edits) {
    const Module* module = module_at(program, edit.file);
    if (cache_.is_decoded(edit.file)) return finding.fix.reset();
    if (module != nullptr && module->tree().size() > 1)
      edit.region = region_of(module->tree(), edit);
  }
}

// Lines of a notebook's text become lines of the .ipynb file; columns and edits would not fit it.
void Finisher::map_notebook(Finding& finding) const {
  const auto json = cache_.read(finding.file);
  if (!json) return;
  const NotebookSource source = notebook_source(*json);
  const NotebookLine begin = source.line(finding.line);
  for (auto& [name, value] : finding.evidence)
    if (name == "sampler_line" && !has_evidence(finding, "sampler_file"))
      value = std::to_string(source.line(number_of(value)).in_file);
  finding.evidence.emplace_back("place", place_in_notebook(begin));
  finding.cell_line = finding.line;
  finding.line = begin.in_file;
  finding.end_line = source.line(finding.end_line).in_file;
  finding.region = {finding.line, 0, finding.end_line, 0};
  finding.fix.reset();
}

}  // namespace bench::diagnose
