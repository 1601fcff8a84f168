#include "diagnose/command/programs.hpp"

#include "bench/core/error.hpp"
#include "diagnose/command/changed_texts.hpp"
#include "diagnose/command/verdict.hpp"
#include "diagnose/driver/diagnose.hpp"
#include "diagnose/driver/explain_trainer.hpp"
#include "diagnose/driver/fix.hpp"
#include "diagnose/driver/source_files.hpp"
#include "diagnose/to_ddp/rewrite.hpp"

namespace bench::diagnose {
namespace {

// Texts in place of what stands in the files.
Reader reading(const std::map<std::string, std::string>& texts) {
  return [&texts](const std::string& path) {
    const auto found = texts.find(path);
    return found == texts.end() ? read_source(path) : std::optional(found->second);
  };
}

// The program that begins with `file`, and all that the rules find in it, with other texts.
void diagnose_again(const DiagnoseOptions& options, const std::string& file,
                    const std::map<std::string, std::string>& texts, const RewrittenVisit& visit) {
  DiagnoseOptions alone = options;
  alone.paths = {file};
  alone.selection = {};
  alone.per_file_ignores.clear();
  const std::vector<Finding> found = diagnose(alone, reading(texts)).findings;
  for_each_program(alone, reading(texts), [&](const Program& program) { visit(program, found); });
}

void expect_script_in_utf8(const Program& program, const Rewrite& rewrite) {
  const std::string& script = program.root().path();
  if (program.is_notebook())
    throw UsageError(script + ": torchrun starts scripts, not notebooks: convert it first");
  for (const Module* module : program.modules())
    if (rewrite.texts.contains(module->path()) &&
        read_source(module->path()) != module->tree().source())
      throw UsageError(module->path() + ": not in UTF-8: convert it before it is rewritten");
}

// The script's first.
std::string diff_of(const std::string& script, const Rewrite& rewrite) {
  const auto diff = [&](const std::string& file) {
    return unified_diff(file, read_source(file).value_or(""), rewrite.texts.at(file));
  };
  std::string out = "\n" + diff(script);
  for (const auto& [file, text] : rewrite.texts)
    if (file != script) out += diff(file);
  return out;
}

// Scripts that share a file may want it otherwise each.
void note_texts(const std::string& script, const Rewrite& rewrite, ChangedTexts& texts) {
  for (const auto& [file, text] : rewrite.texts) {
    if (const auto known = texts.current().find(file);
        known != texts.current().end() && known->second != text)
      throw UsageError(file + ": another script has it rewritten otherwise than " + script +
                       "; rewrite one script at a time; no file is changed");
    texts.set(file, text);
  }
}

}  // namespace

int run_to_ddp(const Flags& flags, ResultOutput& output) {
  bool any = false;
  ChangedTexts texts(read_source);
  DiagnoseOptions options = flags.options;
  options.follows_look_ups = true;
  const auto notices = for_each_program(options, [&](const Program& program) {
    const std::string& file = program.root().path();
    const Rewrite rewrite = rewrite_to_ddp(
        program, [&](const std::map<std::string, std::string>& made, const RewrittenVisit& visit) {
          diagnose_again(options, file, made, visit);
        });
    if (rewrite.steps.empty() && rewrite.refusal.empty()) return;
    any = true;
    std::string out = render_rewrite(file, rewrite);
    if (!rewrite.steps.empty() && (flags.diff || flags.fix)) {
      expect_script_in_utf8(program, rewrite);
      if (flags.diff)
        out += diff_of(file, rewrite);
      else
        note_texts(file, rewrite, texts);
    }
    output.write(out);
  });
  if (!any) output.write("no DataParallel call to rewrite\n");
  if (flags.fix && !flags.diff) texts.hand_over(flags, output);
  return print_notices(notices, flags.options) ? kExitUsage : kExitClean;
}

int run_explain_trainer(const Flags& flags, ResultOutput& output) {
  bool any = false;
  const auto notices = for_each_program(flags.options, [&](const Program& program) {
    const std::string text = explain_trainer(program);
    any = any || !text.empty();
    output.write(text);
  });
  if (!any) output.write("no Lightning Trainer found\n");
  return print_notices(notices, flags.options) ? kExitUsage : kExitClean;
}

}  // namespace bench::diagnose
