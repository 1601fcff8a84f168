#include "diagnose/command/flags.hpp"

#include "bench/core/error.hpp"
#include "bench/core/nearest.hpp"
#include "diagnose/command/given_text.hpp"
#include "diagnose/driver/settings.hpp"
#include "diagnose/output/render.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace bench::diagnose {
namespace {

constexpr double kMostParseSeconds = 3600;

// What the name means; throws UsageError where it means nothing.
template <typename Level>
Level level_of(const std::optional<Level>& named, const std::string& name, const char* flag,
               const std::vector<std::string>& known) {
  if (named) return *named;
  throw UsageError(std::string(flag) + ": " + unknown_name_message("value", name, known));
}

// One value a flag, with commas within: what follows it are paths.
void add_list(CLI::App& app, const char* name, std::vector<std::string>& words, const char* help) {
  app.add_option(name, words, help)->delimiter(',')->allow_extra_args(false);
}

void add_choices(CLI::App& app, Flags& flags) {
  app.add_option("PATH", flags.options.paths,
                 "scripts, notebooks, shell scripts, configs, folders; - for standard input")
      ->required();
  app.add_option("--stdin-filename", flags.stdin_filename,
                 "with -: the file in whose place the text of standard input stands");
  app.add_option("--launch", flags.options.launch, "the command that launches the script");
  app.add_option("--gpus", flags.options.gpus, "number of GPUs it runs on");
  add_list(app, "--select", flags.options.selection.select, "only these rules");
  add_list(app, "--ignore", flags.options.selection.ignore, "not these rules");
  add_list(app, "--exclude", flags.exclude, "not these files and folders: globs as in .gitignore");
  app.add_option("--severity", flags.severity, "least severity shown: info, warning or error");
  app.add_option("--confidence", flags.confidence,
                 "least confidence shown: check, likely or certain");
  app.add_option("--baseline", flags.baseline,
                 "not what stands in this file, the JSON of an earlier run");
  app.add_option("--config", flags.config, "settings; default: bench.toml or pyproject.toml here");
  app.add_option("--parse-limit", flags.parse_limit_seconds,
                 "seconds that parsing one file may take; default: 5");
  app.add_option("--threads", flags.options.threads, "worker threads; default: one a core");
}

void add_outputs(CLI::App& app, Flags& flags) {
  app.add_option("--format", flags.format, "text, json, sarif, github, markdown, junit or gitlab");
  app.add_option("--output-file", flags.output_file,
                 "where the result goes instead of the terminal");
  app.add_flag("--statistics", flags.statistics, "how often each rule was broken, not where");
  app.add_flag("--exit-zero", flags.exit_zero, "exit code 0 in spite of findings");
  app.add_flag("--cost", flags.cost,
               "predict what pitfalls cost the script's own model: records a step and simulates");
  app.add_option("--machine", flags.machine, "the machine of --cost; default: V100s, as many");
}

void add_actions(CLI::App& app, Flags& flags) {
  app.add_flag("--fix", flags.fix, "apply the safe fixes");
  app.add_flag("--diff", flags.diff, "show what --fix, --add-ignores or --to-ddp would change");
  app.add_flag("--add-ignores", flags.add_ignores,
               "write # bench: ignore[RULE] behind the lines of all findings");
  app.add_flag("--to-ddp", flags.to_ddp, "the steps from DataParallel to DDP");
  app.add_flag("--explain-trainer", flags.explain_trainer,
               "what a Lightning Trainer's arguments mean, by version");
}

// The action that is not to show findings; null without one.
const char* action_of(const Flags& flags) {
  return flags.explain_trainer ? "--explain-trainer"
         : flags.to_ddp        ? "--to-ddp"
         : flags.add_ignores   ? "--add-ignores"
         : flags.fix           ? "--fix"
         : flags.diff          ? "--diff"
                               : nullptr;
}

// What a flag asks for would not be done.
void refuse_beside(const char* flag, const char* other) {
  throw UsageError(std::string(flag) + ": cannot be combined with " + other);
}

// One action a run.
void check_action(const CLI::App& app, const Flags& flags) {
  const char* action = action_of(flags);
  if (action == nullptr) return;
  const auto refuse = [&](const char* flag) { refuse_beside(flag, action); };
  if (app.count("--format") > 0) refuse("--format");
  if (flags.cost || !flags.machine.empty()) refuse(flags.cost ? "--cost" : "--machine");
  if (flags.explain_trainer && flags.to_ddp) refuse("--to-ddp");
  if (flags.explain_trainer && (flags.fix || flags.diff)) refuse(flags.fix ? "--fix" : "--diff");
  if (flags.add_ignores && (flags.explain_trainer || flags.to_ddp)) refuse("--add-ignores");
  if (flags.add_ignores && flags.fix) refuse("--fix");
  if (flags.statistics) refuse("--statistics");
  if (flags.explain_trainer || flags.to_ddp)  // which tell all there is, and no findings
    for (const char* flag : {"--select", "--ignore", "--severity", "--confidence", "--exit-zero"})
      if (app.count(flag) > 0) refuse(flag);
  if (flags.baseline && !flags.add_ignores) refuse("--baseline");
}

void check_output(const Flags& flags) {
  const bool from_input = flags.options.paths == std::vector<std::string>{"-"};
  const bool changes_files = (flags.fix || flags.add_ignores) && !flags.diff;
  if (flags.output_file && changes_files && !flags.to_ddp && !from_input)
    refuse_beside("--output-file", action_of(flags));
  if (from_input && flags.to_ddp) refuse_beside("--to-ddp", "- (standard input)");
  if (flags.statistics && flags.format != "text")
    throw UsageError("--statistics: only with --format text, not with " + flags.format);
  if (flags.statistics && (flags.cost || !flags.machine.empty()))
    refuse_beside(flags.cost ? "--cost" : "--machine", "--statistics");
}

void check_values(const Flags& flags) {
  if (find_format(flags.format) == nullptr) {
    const auto known = format_names();
    throw UsageError("--format: " + unknown_name_message("value", flags.format, known));
  }
  if (flags.options.gpus.value_or(1) < 1)
    throw UsageError("--gpus: expected a positive number, found " +
                     std::to_string(*flags.options.gpus));
  if (!(flags.parse_limit_seconds > 0 && flags.parse_limit_seconds <= kMostParseSeconds))
    throw UsageError("--parse-limit: expected seconds, more than 0 and at most 3600");
}

}  // namespace

std::optional<Flags> read_flags(std::vector<std::string> arguments) {
  Flags flags;
  CLI::App app(
      "Reads training scripts, launch lines and configs; says what is wrong, at which line.",
      "bench diagnose");
  add_choices(app, flags);
  add_outputs(app, flags);
  add_actions(app, flags);
  try {
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
    app.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    throw UsageError(std::string("bench diagnose: ") + error.what());
  }
  check_action(app, flags);
  DiagnoseOptions& options = flags.options;
  for (auto* words : {&options.selection.select, &options.selection.ignore, &flags.exclude})
    for (std::string& word : *words) word = CLI::detail::trim_copy(word);
  check_values(flags);
  check_output(flags);
  options.parse_limit = std::chrono::microseconds(std::llround(flags.parse_limit_seconds * 1e6));
  for (const std::string& glob : flags.exclude)
    options.exclude.add(PathPattern(glob, current_folder(), "--exclude"));
  take_standard_input(flags.stdin_filename, options);
  flags.settings_file = apply_settings(flags.config, options);
  if (app.count("--severity") > 0)
    options.selection.at_least = level_of(severity_named(flags.severity), flags.severity,
                                          "--severity", {"info", "warning", "error"});
  if (app.count("--confidence") > 0)
    options.selection.least_sure = level_of(confidence_named(flags.confidence), flags.confidence,
                                            "--confidence", {"check", "likely", "certain"});
  return flags;
}

}  // namespace bench::diagnose
