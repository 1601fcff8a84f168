#include "diagnose/command/flags.hpp"

#include "bench/core/error.hpp"
#include "bench/core/nearest.hpp"
#include "diagnose/driver/settings.hpp"
#include "diagnose/output/render.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace bench::diagnose {
namespace {

constexpr double kMostParseSeconds = 3600;

Severity severity_named(const std::string& name) {
  for (const Severity severity : {Severity::info, Severity::warning, Severity::error})
    if (name_of(severity) == name) return severity;
  const std::vector<std::string> known{"info", "warning", "error"};
  throw UsageError("--severity: " + unknown_name_message("value", name, known));
}

// One value a flag, with commas within: what follows it are paths.
void add_list(CLI::App& app, const char* name, std::vector<std::string>& words, const char* help) {
  app.add_option(name, words, help)->delimiter(',')->allow_extra_args(false);
}

void add_options(CLI::App& app, Flags& flags) {
  app.add_option("PATH", flags.options.paths, "scripts, notebooks, shell scripts, configs, folders")
      ->required();
  app.add_option("--launch", flags.options.launch, "the command that launches the script");
  app.add_option("--gpus", flags.options.gpus, "number of GPUs it runs on");
  app.add_option("--format", flags.format, "text, json, sarif, github or markdown");
  add_list(app, "--select", flags.options.selection.select, "only these rules");
  add_list(app, "--ignore", flags.options.selection.ignore, "not these rules");
  add_list(app, "--exclude", flags.exclude, "not these files and folders: globs as in .gitignore");
  app.add_option("--severity", flags.severity, "least severity shown: info, warning or error");
  app.add_option("--config", flags.config, "settings; default: bench.toml or pyproject.toml here");
  app.add_option("--parse-limit", flags.parse_limit_seconds,
                 "seconds that parsing one file may take; default: 5");
  app.add_option("--threads", flags.options.threads, "worker threads; default: one a core");
  app.add_flag("--cost", flags.cost,
               "predict what pitfalls cost the script's own model: records a step and simulates");
  app.add_option("--machine", flags.machine, "the machine of --cost; default: V100s, as many");
  app.add_flag("--fix", flags.fix, "apply the safe fixes");
  app.add_flag("--diff", flags.diff, "show what --fix or --to-ddp would change");
  app.add_flag("--to-ddp", flags.to_ddp, "the steps from DataParallel to DDP");
  app.add_flag("--explain-trainer", flags.explain_trainer,
               "what a Lightning Trainer's arguments mean, by version");
}

// One action a run: what another flag asks for would not be done.
void check_combination(const CLI::App& app, const Flags& flags) {
  const char* action = flags.explain_trainer ? "--explain-trainer"
                       : flags.to_ddp        ? "--to-ddp"
                       : flags.fix           ? "--fix"
                       : flags.diff          ? "--diff"
                                             : nullptr;
  if (action == nullptr) return;
  const auto refuse = [&](const std::string& flag) {
    throw UsageError(flag + ": cannot be combined with " + action);
  };
  if (app.count("--format") > 0) refuse("--format");
  if (flags.cost || !flags.machine.empty()) refuse(flags.cost ? "--cost" : "--machine");
  if (flags.explain_trainer && flags.to_ddp) refuse("--to-ddp");
  if (flags.explain_trainer && (flags.fix || flags.diff)) refuse(flags.fix ? "--fix" : "--diff");
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
  add_options(app, flags);
  try {
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
    app.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    throw UsageError(std::string("bench diagnose: ") + error.what());
  }
  check_combination(app, flags);
  DiagnoseOptions& options = flags.options;
  for (auto* words : {&options.selection.select, &options.selection.ignore, &flags.exclude})
    for (std::string& word : *words) word = CLI::detail::trim_copy(word);
  check_values(flags);
  options.parse_limit = std::chrono::microseconds(std::llround(flags.parse_limit_seconds * 1e6));
  for (const std::string& glob : flags.exclude)
    options.exclude.add(PathPattern(glob, current_folder(), "--exclude"));
  apply_settings(flags.config, options);
  if (!flags.severity.empty()) options.selection.at_least = severity_named(flags.severity);
  return flags;
}

}  // namespace bench::diagnose
