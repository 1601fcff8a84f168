// What comes behind the steps to DDP: the safe fixes of rules that speak of ranks, which had
// nothing to say before there were any, and what remains for the user.
#include "diagnose/driver/fix.hpp"
#include "diagnose/driver/to_ddp.hpp"

#include <algorithm>
#include <array>

namespace bench::diagnose {
namespace {

constexpr int kRounds = 8;              // a fix may make room for the next one
constexpr std::size_t kMostFixes = 64;  // of a round, each of which is tried on its own first

// A text and, for each of its lines, the line of the script as it was that it comes from.
struct Traced {
  std::string text;
  std::vector<std::uint32_t> lines;
};

Traced traced(const std::string& text) {
  Traced out{text, {}};
  const auto count = std::count(text.begin(), text.end(), '\n') + 1;
  for (std::uint32_t line = 1; line <= count; ++line) out.lines.push_back(line);
  return out;
}

// What an edit puts in comes from the line that it stands in.
Traced edited(const Traced& before, std::vector<Edit> edits) {
  std::stable_sort(edits.begin(), edits.end(),
                   [](const Edit& a, const Edit& b) { return a.begin < b.begin; });
  Traced out{apply_edits(before.text, edits), {before.lines.front()}};
  std::size_t line = 0;
  std::size_t at = 0;
  const auto copy_to = [&](std::size_t end, bool kept) {
    for (; at < end; ++at)
      if (before.text[at] == '\n') {
        ++line;
        if (kept) out.lines.push_back(before.lines[line]);
      }
  };
  for (const Edit& edit : edits) {
    if (edit.begin < at || edit.end > before.text.size()) continue;
    copy_to(edit.begin, true);
    // A statement that is put above another one comes from that one's line, too.
    out.lines.insert(out.lines.end(),
                     static_cast<std::size_t>(std::count(edit.text.begin(), edit.text.end(), '\n')),
                     before.lines[line]);
    copy_to(edit.end, false);
  }
  copy_to(before.text.size(), true);
  return out;
}

// Rules whose fixes belong to the way to DDP. A checkpoint's keys (DDP041) stay as they are: other
// scripts of the user may read them.
bool belongs_to_ddp(const Finding& finding) {
  constexpr std::array<std::string_view, 4> kRules = {"DDP018", "DDP026", "DDP039", "DDP040"};
  return finding.fix && std::find(kRules.begin(), kRules.end(), finding.rule) != kRules.end();
}

void add_step(std::vector<RewriteStep>& steps, const Finding& finding, std::uint32_t line) {
  const auto same = std::find_if(steps.begin(), steps.end(), [&](const RewriteStep& step) {
    return step.title == finding.fix->title;
  });
  if (same == steps.end()) {
    steps.push_back({finding.fix->title, finding.rule + ", " + finding.message + ".", {line}, {}});
    return;
  }
  same->lines.push_back(line);
  std::sort(same->lines.begin(), same->lines.end());
  same->lines.erase(std::unique(same->lines.begin(), same->lines.end()), same->lines.end());
}

bool touches(const std::vector<Edit>& taken, const Fix& fix) {
  return std::any_of(fix.edits.begin(), fix.edits.end(), [&](const Edit& edit) {
    return std::any_of(taken.begin(), taken.end(), [&](const Edit& other) {
      return edit.begin <= other.end && other.begin <= edit.end;
    });
  });
}

// Makes the fixes of one round that do not touch each other; false where there is none.
bool mend(const std::vector<Finding>& found, const std::string& file, Traced& script,
          std::vector<RewriteStep>& steps) {
  std::vector<Edit> edits;
  std::vector<const Finding*> made;
  for (const Finding& finding : found) {
    if (!belongs_to_ddp(finding) || finding.file != file || touches(edits, *finding.fix)) continue;
    std::size_t applied = 0;
    apply_fixes({finding}, {{file, script.text}}, applied);
    if (applied == 0) continue;
    edits.insert(edits.end(), finding.fix->edits.begin(), finding.fix->edits.end());
    made.push_back(&finding);
    if (made.size() == kMostFixes) break;
  }
  for (const Finding* finding : made) {
    const std::size_t line = std::min<std::size_t>(finding->line, script.lines.size());
    add_step(steps, *finding, script.lines[line == 0 ? 0 : line - 1]);
  }
  if (!made.empty()) script = edited(script, edits);
  return !made.empty();
}

// A script with a mode for DDP needs no second one; empty where there is none.
std::string reason_to_refuse(const Program& program) {
  const auto& wraps = program.wraps();
  const auto of_kind = [&](Wrapper kind) {
    return std::find_if(wraps.begin(), wraps.end(),
                        [&](const Wrap& wrap) { return wrap.kind == kind; });
  };
  const auto joins = program.calls(Api::init_process_group);
  const auto ddp = of_kind(Wrapper::ddp);
  if (of_kind(Wrapper::data_parallel) == wraps.end() || (joins.empty() && ddp == wraps.end()))
    return {};
  const CallRef mode = joins.empty() ? ddp->call : joins.front();
  return (joins.empty() ? "wraps in DistributedDataParallel" : "joins a process group") +
         std::string(" already (line ") +
         std::to_string(mode.module->tree().line_of(mode.call->node)) +
         "): start it with torchrun in the mode that does";
}

}  // namespace

Rewrite rewrite_and_mend(const Program& program, const Rediagnose& rediagnose) {
  Rewrite out;
  out.steps = rewrite_to_ddp(program);
  const std::string& file = program.root().path();
  if (out.steps.empty()) {
    out.refusal = reason_to_refuse(program);
    return out;
  }
  std::vector<Edit> edits;
  for (const RewriteStep& step : out.steps)
    edits.insert(edits.end(), step.edits.begin(), step.edits.end());
  Traced script = edited(traced(std::string(program.root().tree().source())), edits);
  std::vector<Finding> found = rediagnose(script.text);
  for (int round = 0; round < kRounds && mend(found, file, script, out.steps); ++round)
    found = rediagnose(script.text);
  for (Finding& finding : found)
    if (finding.file == file && finding.severity != Severity::info)
      out.left.push_back(std::move(finding));
  out.text = std::move(script.text);
  return out;
}

std::string render_rewrite(const std::string& file, const Rewrite& rewrite) {
  if (!rewrite.refusal.empty()) return file + ": " + rewrite.refusal + "\n";
  if (rewrite.steps.empty()) return file + ": no DataParallel call to rewrite\n";
  std::string out = file + ": from DataParallel to DistributedDataParallel\n";
  std::size_t number = 0;
  for (const RewriteStep& step : rewrite.steps) {
    out += std::to_string(++number) + ". " + step.title + " (line";
    for (std::size_t i = 0; i < step.lines.size(); ++i)
      out += (i == 0 ? (step.lines.size() > 1 ? "s " : " ") : ", ") + std::to_string(step.lines[i]);
    out += "): " + step.why + "\n";
  }
  const bool is_notebook = file.ends_with(".ipynb");
  const std::string script = is_notebook ? file.substr(0, file.size() - 6) + ".py" : file;
  if (is_notebook)
    out += std::to_string(++number) +
           ". Make it a script, since ranks start from a file: jupyter " +
           "nbconvert --to script " + file + "\n";
  out += std::to_string(++number) + ". Launch it: torchrun --standalone --nproc-per-node=gpu " +
         script + "\n";
  if (!rewrite.left.empty()) out += "Left to you, by the lines of the rewritten file:\n";
  for (const Finding& finding : rewrite.left)
    out += "  " + file + ":" + std::to_string(finding.line) + ": " + finding.rule + " " +
           finding.message + ". " + finding.help + "\n";
  return out;
}

}  // namespace bench::diagnose
