#include "diagnose/to_ddp/rewrite.hpp"

#include "diagnose/driver/fix.hpp"
#include "diagnose/to_ddp/cpu_states.hpp"
#include "diagnose/to_ddp/late_draws.hpp"
#include "diagnose/to_ddp/reached_code.hpp"
#include "diagnose/to_ddp/refusal.hpp"
#include "diagnose/to_ddp/remaining/topics.hpp"
#include "diagnose/to_ddp/run_directories.hpp"
#include "diagnose/to_ddp/unfollowed.hpp"
#include "diagnose/to_ddp/waits.hpp"
#include "scenarios/pitfalls/files/readers_elsewhere.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <array>

namespace bench::diagnose {
namespace {

constexpr int kRounds = 8;              // a fix may make room for the next one
constexpr std::size_t kMostFixes = 64;  // of a round, each of which is tried on its own first

// A text and, for each of its lines, the line of the file as it was that it comes from.
struct Traced {
  std::string text;
  std::vector<std::uint32_t> lines;
};
using TracedFiles = std::map<std::string, Traced>;  // the files that change, by path

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

// Rules whose fixes belong to the way to DDP.
bool belongs_to_ddp(const Finding& finding) {
  constexpr std::array<std::string_view, 4> kRules = {"DDP018", "DDP026", "DDP039", "DDP040"};
  return finding.fix && std::find(kRules.begin(), kRules.end(), finding.rule) != kRules.end();
}

// A checkpoint's keys stay as they are: other scripts of the user may read them. Where runs on one
// GPU had no wrapper and all have one now, the keys of those runs are the ones that others read.
bool keeps_keys(const Finding& finding, const Program& rewritten, const Parts& parts) {
  return finding.rule == "DDP041" && finding.fix && !parts.conditions.empty() &&
         pitfalls::is_loaded_elsewhere(rewritten);
}

std::map<std::string, std::vector<Edit>> by_file(const std::vector<Edit>& edits) {
  std::map<std::string, std::vector<Edit>> out;
  for (const Edit& edit : edits) out[edit.file].push_back(edit);
  return out;
}

TracedFiles after_steps(const Program& program, const std::vector<RewriteStep>& steps) {
  std::vector<Edit> all;
  for (const RewriteStep& step : steps) all.insert(all.end(), step.edits.begin(), step.edits.end());
  const auto edits = by_file(all);
  TracedFiles out;
  for (const Module* module : program.modules()) {
    const auto found = edits.find(module->path());
    if (found != edits.end())
      out[module->path()] = edited(traced(std::string(module->tree().source())), found->second);
  }
  return out;
}

std::map<std::string, std::string> texts_of(const TracedFiles& files) {
  std::map<std::string, std::string> out;
  for (const auto& [file, traced] : files) out[file] = traced.text;
  return out;
}

void add_step(std::vector<RewriteStep>& steps, const Finding& finding, TouchedLine line) {
  const auto same = std::find_if(steps.begin(), steps.end(), [&](const RewriteStep& step) {
    return step.title == finding.fix->title;
  });
  if (same == steps.end())
    steps.push_back(
        {finding.fix->title, finding.rule + ", " + finding.message + ".", {std::move(line)}, {}});
  else
    same->lines.push_back(std::move(line));
}

void sort_lines(RewriteStep& step, const std::string& script) {
  std::sort(step.lines.begin(), step.lines.end(), [&](const TouchedLine& a, const TouchedLine& b) {
    const bool a_is_other = a.file != script;
    const bool b_is_other = b.file != script;
    return a_is_other != b_is_other ? b_is_other : a < b;
  });
  step.lines.erase(std::unique(step.lines.begin(), step.lines.end()), step.lines.end());
}

bool touches(const std::vector<Edit>& taken, const Fix& fix) {
  return std::any_of(fix.edits.begin(), fix.edits.end(), [&](const Edit& edit) {
    return std::any_of(taken.begin(), taken.end(), [&](const Edit& other) {
      return edit.file == other.file && edit.begin <= other.end && other.begin <= edit.end;
    });
  });
}

// Where the finding stands in the file as it was.
TouchedLine line_before(const Finding& finding, const TracedFiles& files) {
  const auto found = files.find(finding.file);
  if (found == files.end()) return {finding.file, finding.line};
  const auto& lines = found->second.lines;
  const std::size_t line = std::min<std::size_t>(finding.line, lines.size());
  return {finding.file, lines[line == 0 ? 0 : line - 1]};
}

// Makes the fixes of one round that do not touch each other, each of a finding that has one; false
// where there is none.
bool mend(const Program& program, const std::vector<Finding>& found, TracedFiles& files,
          std::vector<RewriteStep>& steps) {
  std::map<std::string, std::string> texts;
  for (const Module* module : program.modules())
    texts[module->path()] = std::string(module->tree().source());
  std::vector<Edit> edits;
  std::vector<const Finding*> made;
  for (const Finding& finding : found) {
    if (touches(edits, *finding.fix)) continue;
    std::size_t applied = 0;
    apply_fixes({finding}, texts, applied);
    if (applied == 0) continue;
    edits.insert(edits.end(), finding.fix->edits.begin(), finding.fix->edits.end());
    made.push_back(&finding);
    if (made.size() == kMostFixes) break;
  }
  for (const Finding* finding : made) add_step(steps, *finding, line_before(*finding, files));
  for (auto& [file, own] : by_file(edits)) {
    const auto known = files.find(file);
    files[file] = edited(known == files.end() ? traced(texts.at(file)) : known->second, own);
  }
  return !made.empty();
}

// CUDA_VISIBLE_DEVICES=0,1 where the script chose some of the GPUs for itself.
std::string chosen_gpus(const Program& program, const Parts& parts) {
  if (parts.gpu_choices.size() != 1) return {};
  std::string chosen = program.string(parts.gpu_choices.front().child(Field::right)).value_or("");
  std::erase(chosen, ' ');
  const bool several = chosen.find(',') != std::string::npos &&
                       chosen.find_first_not_of("0123456789,") == std::string::npos;
  return several ? "CUDA_VISIBLE_DEVICES=" + chosen + " " : std::string();
}

// 2 for CUDA_VISIBLE_DEVICES=0,1; 0 where nothing is chosen.
std::int64_t count_of_gpus(const std::string& chosen) {
  return chosen.empty() ? 0 : std::count(chosen.begin(), chosen.end(), ',') + 1;
}

// bert for "bert = bert_pytorch.__main__:train" of a setup.py; empty where nothing names it.
std::string command_for(const Program& program, std::string_view function) {
  const std::string target = "__main__:" + std::string(function);
  std::string out;
  program.where_in_project([&](std::string_view text) -> std::optional<std::uint32_t> {
    const std::size_t at = text.find(target);
    if (at == std::string_view::npos || !out.empty()) return std::nullopt;
    const std::size_t equals = text.rfind('=', at);
    const std::size_t quote = text.find_last_of("'\"", at);
    if (equals == std::string_view::npos || quote > equals) return std::nullopt;
    const std::string_view name = text.substr(quote + 1, equals - quote - 1);
    out = name.substr(0, name.find_last_not_of(' ') + 1);
    return std::nullopt;
  });
  return out;
}

// What torchrun starts: a file, the module of a file that imports relatively, a package's command.
std::string target_of(const Program& program) {
  const Module& root = program.root();
  for (const Function& function : root.functions())
    if (pitfalls::facts::is_command(program, {&root, &function}))
      if (std::string command = command_for(program, function.name); !command.empty())
        return "--no-python " + command;
  std::string path = root.path();
  if (path.ends_with(".ipynb")) return path.replace(path.size() - 6, 6, ".py");
  const bool is_relative = std::any_of(root.imports().begin(), root.imports().end(),
                                       [](const auto& import) { return import.starts_with('.'); });
  const bool is_below = path.find('/') != std::string::npos && !path.starts_with('/') &&
                        !path.starts_with("../") && path.ends_with(".py");
  if (!is_relative || !is_below) return path;
  path.resize(path.size() - 3);
  if (path.ends_with("/__main__")) path.resize(path.size() - 9);
  std::replace(path.begin(), path.end(), '/', '.');
  return "-m " + path;
}

std::string launch_of(const Program& program, const Parts& parts) {
  std::string out = chosen_gpus(program, parts) + "torchrun --standalone --nproc-per-node=gpu " +
                    target_of(program);
  for (const std::string& flag : parts.launch_flags) out += " " + flag;
  return out;
}

bool says(const std::vector<Finding>& found, std::string_view rule) {
  return std::any_of(found.begin(), found.end(), [&](const Finding& each) {
    return each.rule == rule && each.severity == Severity::error;
  });
}

// Where rules say that DDP as it is would raise: for parameters without a gradient in the second
// step (DDP001), for buffers that a second pass copies into place before the backward pass
// (DDP011). DataParallel kept those of the first replica; rank 0 saves its own.
StepOptions options_for(const ReachedCode& rewritten, const std::vector<Finding>& found) {
  return {.find_unused_parameters = says(found, "DDP001"),
          .keep_buffers = says(found, "DDP011") || !repeated_forwards({rewritten, found}).empty()};
}

// The line of the rewritten file that comes from the line of the file as it was.
std::uint32_t line_after(const TracedFiles& files, const std::string& file, std::uint32_t line) {
  const auto found = files.find(file);
  if (found == files.end()) return line;
  const auto& lines = found->second.lines;
  const auto at = std::find(lines.rbegin(), lines.rend(), line);
  return at == lines.rend() ? line : static_cast<std::uint32_t>(lines.rend() - at);
}

// DataParallel(net, dim=1): the rewritten call says nothing of it any more.
void tell_other_dimensions(const Program& program, const Parts& parts, const TracedFiles& files,
                           std::vector<Remaining>& left) {
  for (const Wrap* wrap : parts.wraps) {
    const Ref dim = wrap->call.keyword("dim");
    const auto number = dim ? program.integer(dim) : std::nullopt;
    if (!number || *number == 0) continue;
    const std::string& file = dim.module->path();
    const std::uint32_t line = line_after(files, file, dim.module->tree().line_of(dim.node));
    left.push_back({file,
                    line,
                    "DataParallel cut its inputs along dimension " + std::to_string(*number) +
                        ", which is the batch here, and no sampler does that: give each rank its "
                        "part along it where the inputs are made.",
                    {}});
  }
}

// A file that parses no more: an edit did not fit.
std::string broken_file(const Program& program, const std::map<std::string, std::string>& texts) {
  for (const Module* module : program.modules()) {
    const auto found = texts.find(module->path());
    if (found != texts.end() && !module->tree().has_errors() &&
        SyntaxTree::parse(found->second).has_errors())
      return module->path();
  }
  return {};
}

}  // namespace

Rewrite rewrite_to_ddp(const Program& program, const Rediagnose& rediagnose) {
  Rewrite out;
  ReachedCode reached(program);
  out.refusal = reason_to_refuse(reached);
  if (!out.refusal.empty()) return out;
  const Parts parts = parts_of(reached);
  if (parts.wraps.empty()) {
    out.refusal = unfollowed_wrapper(program, reached);
    if (out.refusal.empty()) out.refusal = wrapper_out_of_reach(program);
    return out;
  }
  out.steps = steps_to_ddp(reached, parts);
  if (out.steps.empty()) {
    if (looks_code_up(program, reached)) {
      out.refusal = unfollowed_wrapper(program, reached);
      return out;
    }
    out.refusal =
        "no line of its own leads to the DataParallel call, to join a process group above: write "
        "a main() that does, and call it";
    return out;
  }
  TracedFiles files = after_steps(program, out.steps);
  const std::int64_t ranks = count_of_gpus(chosen_gpus(program, parts));
  bool is_first = true;
  for (int rounds = kRounds; rounds > 0;) {
    bool again = false;
    rediagnose(texts_of(files), [&](const Program& rewritten, const std::vector<Finding>& found) {
      const ReachedCode now(rewritten);
      const StepOptions options = is_first ? options_for(now, found) : StepOptions{};
      is_first = false;
      if (options.find_unused_parameters || options.keep_buffers) {
        out.steps = steps_to_ddp(reached, parts, options);
        files = after_steps(program, out.steps);
        again = true;
        return;
      }
      std::vector<Finding> mendable = waits_for_saved(now);
      for (Finding& each : directories_to_allow(now)) mendable.push_back(std::move(each));
      for (Finding& each : draws_to_send(rewritten)) mendable.push_back(std::move(each));
      for (Finding& each : states_to_copy(now)) mendable.push_back(std::move(each));
      for (const Finding& each : found)
        if (belongs_to_ddp(each) || keeps_keys(each, rewritten, parts)) mendable.push_back(each);
      again = --rounds > 0 && mend(rewritten, mendable, files, out.steps);
      if (!again) out.left = what_remains(now, found, ranks);
    });
    if (!again) break;
  }
  tell_other_dimensions(program, parts, files, out.left);
  out.texts = texts_of(files);
  if (const std::string file = broken_file(program, out.texts); !file.empty())
    return {.steps = {},
            .texts = {},
            .left = {},
            .launch = {},
            .refusal = "an edit of " + file + " would not parse: rewrite it by hand"};
  for (RewriteStep& step : out.steps) sort_lines(step, program.root().path());
  out.launch = launch_of(program, parts);
  return out;
}

}  // namespace bench::diagnose
