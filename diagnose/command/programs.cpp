#include "diagnose/command/programs.hpp"

#include "bench/core/error.hpp"
#include "diagnose/command/verdict.hpp"
#include "diagnose/driver/diagnose.hpp"
#include "diagnose/driver/explain_trainer.hpp"
#include "diagnose/driver/fix.hpp"
#include "diagnose/driver/source_files.hpp"
#include "diagnose/driver/to_ddp.hpp"

namespace bench::diagnose {
namespace {

// The rules' findings where `text` stands in place of the file.
std::vector<Finding> findings_with(const DiagnoseOptions& options, const std::string& file,
                                   const std::string& text) {
  DiagnoseOptions alone = options;
  alone.paths = {file};
  alone.selection = {};
  alone.per_file_ignores.clear();
  return diagnose(alone,
                  [&](const std::string& path) {
                    return path == file ? std::optional(text) : read_source(path);
                  })
      .findings;
}

}  // namespace

int run_to_ddp(const Flags& flags, ResultOutput& output) {
  bool any = false;
  const auto notices = for_each_program(flags.options, [&](const Program& program) {
    const std::string& file = program.root().path();
    const Rewrite rewrite = rewrite_and_mend(
        program, [&](const std::string& text) { return findings_with(flags.options, file, text); });
    if (rewrite.steps.empty() && rewrite.refusal.empty()) return;
    any = true;
    std::string out = render_rewrite(file, rewrite);
    if (!rewrite.steps.empty() && (flags.diff || flags.fix)) {
      const std::string before(program.root().tree().source());
      if (program.is_notebook())
        throw UsageError(file + ": torchrun starts scripts, not notebooks: convert it first");
      if (read_source(file).value_or("").size() != before.size())
        throw UsageError(file + ": not in UTF-8: convert it before it is rewritten");
      if (flags.diff) out += "\n" + unified_diff(file, before, rewrite.text);
      if (flags.fix && !flags.diff) write_source(file, rewrite.text);
    }
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
