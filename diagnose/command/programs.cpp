#include "diagnose/command/programs.hpp"

#include "bench/core/error.hpp"
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

// The text of a file that is to be written anew.
std::string text_before(const Program& program, const std::string& file) {
  const auto text = read_source(file);
  for (const Module* module : program.modules())
    if (module->path() == file && text != module->tree().source())
      throw UsageError(file + ": not in UTF-8: convert it before it is rewritten");
  return text.value_or("");
}

void show_and_write(const Flags& flags, const Program& program, const Rewrite& rewrite,
                    std::string& out) {
  const std::string& script = program.root().path();
  if (program.is_notebook())
    throw UsageError(script + ": torchrun starts scripts, not notebooks: convert it first");
  std::map<std::string, std::string> before;
  for (const auto& [file, text] : rewrite.texts) before[file] = text_before(program, file);
  if (flags.diff) {
    out += "\n" + unified_diff(script, before.at(script), rewrite.texts.at(script));
    for (const auto& [file, text] : rewrite.texts)
      if (file != script) out += unified_diff(file, before.at(file), text);
  }
  if (flags.fix && !flags.diff)
    for (const auto& [file, text] : rewrite.texts) write_source(file, text);
}

}  // namespace

int run_to_ddp(const Flags& flags, ResultOutput& output) {
  bool any = false;
  const auto notices = for_each_program(flags.options, [&](const Program& program) {
    const std::string& file = program.root().path();
    const Rewrite rewrite = rewrite_to_ddp(
        program, [&](const std::map<std::string, std::string>& texts, const RewrittenVisit& visit) {
          diagnose_again(flags.options, file, texts, visit);
        });
    if (rewrite.steps.empty() && rewrite.refusal.empty()) return;
    any = true;
    std::string out = render_rewrite(file, rewrite);
    if (!rewrite.steps.empty() && (flags.diff || flags.fix))
      show_and_write(flags, program, rewrite, out);
    output.write(out);
  });
  if (!any) output.write("no DataParallel call to rewrite\n");
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
