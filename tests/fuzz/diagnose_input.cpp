#include "tests/fuzz/diagnose_input.hpp"

#include "bench/core/error.hpp"
#include "diagnose/driver/diagnose.hpp"
#include "diagnose/driver/explain_trainer.hpp"
#include "diagnose/driver/fix.hpp"
#include "diagnose/output/render.hpp"
#include "diagnose/to_ddp/rewrite.hpp"
#include "scenarios/pitfalls/page.hpp"
#include "scenarios/pitfalls/registry.hpp"

#include <map>
#include <stdexcept>

namespace bench::diagnose {
namespace {

using Files = std::map<std::string, std::string>;

constexpr std::string_view kNextFile = "\n#-- ";
constexpr char kLaunchTag = 'l';

struct Tag {
  char byte;
  const char* file;
};
constexpr Tag kTags[] = {{'p', "train.py"},    {'n', "train.ipynb"}, {'s', "run.sh"},
                         {'y', "config.yaml"}, {'t', "config.toml"}, {'j', "config.json"}};

void expect_inside(const Finding& finding, const Files& files) {
  const bool ordered = finding.line >= 1 && finding.column >= 1 &&
                       (finding.end_line > finding.line ||
                        (finding.end_line == finding.line && finding.end_column >= finding.column));
  if (!ordered) throw std::logic_error(finding.rule + ": a region that ends before it begins");
  if (!finding.fix) return;
  for (const Edit& edit : finding.fix->edits) {
    const auto file = files.find(edit.file);
    if (file == files.end() || edit.begin > edit.end || edit.end > file->second.size())
      throw std::logic_error(finding.rule + ": an edit outside of the text");
  }
}

std::size_t run(const Files& files, const std::string& script, const DiagnoseOptions& options) {
  const auto findings = diagnose_texts(files, script, options);
  for (const Finding& finding : findings) expect_inside(finding, files);
  for (const std::string& format : format_names())
    find_format(format)->render(findings, {1, false});
  std::size_t applied = 0;
  for (const auto& [file, text] : apply_fixes(findings, files, applied))
    unified_diff(file, files.at(file), text);
  for_each_program_of_texts(files, script, options, [&](const Program& program) {
    explain_trainer(program);
    rewrite_to_ddp(program, [&](const Files& texts, const RewrittenVisit& visit) {
      Files changed = files;
      for (const auto& [file, text] : texts) changed[file] = text;
      const auto found = diagnose_texts(changed, script, options);
      for_each_program_of_texts(changed, script, options,
                                [&](const Program& rewritten) { visit(rewritten, found); });
    });
  });
  return findings.size();
}

std::size_t run_as(const std::string& name, const std::string& text) {
  return run({{name, text}}, name, {});
}

// A launch line that names no script is refused, as on the command line.
std::size_t run_launch(const std::string& command) {
  DiagnoseOptions options;
  options.launch = command;
  try {
    return run({{"train.py", "import torch\n"}}, "train.py", options);
  } catch (const UsageError&) {
    return 0;
  }
}

}  // namespace

std::size_t run_as_script(const std::string& text) { return run_as("train.py", text); }

std::size_t run_on_every_kind(std::string_view bytes) {
  const std::string text(bytes);
  std::size_t found = run_launch(text);
  for (const Tag& tag : kTags) found += run_as(tag.file, text);
  return found;
}

std::size_t run_tagged(std::string_view bytes) {
  if (bytes.empty()) return 0;
  const char byte = bytes.front();
  bytes.remove_prefix(1);
  if (byte == kLaunchTag) return run_launch(std::string(bytes));
  std::string script = kTags[0].file;
  for (const Tag& tag : kTags)
    if (tag.byte == byte) script = tag.file;
  std::size_t end = bytes.find(kNextFile);
  Files files{{script, std::string(bytes.substr(0, end))}};
  while (end != std::string_view::npos) {
    bytes.remove_prefix(end + kNextFile.size());
    const std::size_t name = bytes.find('\n');
    if (name == std::string_view::npos) break;
    end = bytes.find(kNextFile, name);
    files.emplace(bytes.substr(0, name),
                  bytes.substr(name + 1, end == std::string_view::npos ? end : end - name - 1));
  }
  return run(files, script, {});
}

std::vector<std::string> tagged_seeds() {
  std::vector<std::string> seeds;
  const auto tag_of = [](std::string_view name) {
    for (const Tag& tag : kTags) {
      const std::string_view file = tag.file;
      if (name.ends_with(file.substr(file.rfind('.')))) return tag.byte;
    }
    return kTags[0].byte;
  };
  for (const pitfalls::Rule& rule : pitfalls::all_rules())
    for (const auto& each : pitfalls::cases_of(pitfalls::page_of(rule))) {
      if (!each.launch.empty()) seeds.push_back(kLaunchTag + each.launch);
      const auto script = each.files.find(each.script);
      if (script == each.files.end()) continue;
      std::string seed = tag_of(each.script) + script->second;
      for (const auto& [name, text] : each.files)
        if (name != each.script) seed.append(kNextFile).append(name).append("\n").append(text);
      seeds.push_back(std::move(seed));
    }
  return seeds;
}

}  // namespace bench::diagnose
