#include "diagnose/command.hpp"

#include "bench/core/error.hpp"
#include "bench/core/nearest.hpp"
#include "diagnose/driver/diagnose.hpp"
#include "diagnose/driver/explain_trainer.hpp"
#include "diagnose/driver/fix.hpp"
#include "diagnose/driver/settings.hpp"
#include "diagnose/driver/source_files.hpp"
#include "diagnose/driver/to_ddp.hpp"
#include "diagnose/output/index.hpp"
#include "diagnose/output/render.hpp"
#include "scenarios/pitfalls/page.hpp"
#include "scenarios/pitfalls/registry.hpp"

#include <CLI/CLI.hpp>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>

namespace bench::diagnose {
namespace {

constexpr double kMostParseSeconds = 3600;

struct Flags {
  DiagnoseOptions options;
  std::string format = "text";
  std::string severity;
  std::optional<std::string> config;
  bool fix = false;
  bool diff = false;
  bool to_ddp = false;
  bool explain_trainer = false;
  bool cost = false;
  std::string machine;
  double parse_limit_seconds = 5;
};

Severity severity_named(const std::string& name) {
  for (const Severity severity : {Severity::info, Severity::warning, Severity::error})
    if (name_of(severity) == name) return severity;
  const std::vector<std::string> known{"info", "warning", "error"};
  throw UsageError("--severity: " + unknown_name_message("value", name, known));
}

void parse(std::vector<std::string> arguments, CLI::App& app) {
  std::reverse(arguments.begin(), arguments.end());
  app.parse(arguments);
}

bool wants_color() { return ::isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr; }

// 1 when something needs a change; notes alone leave a script clean.
int exit_code_of(const std::vector<Finding>& findings) {
  const bool found = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.severity != Severity::info;
  });
  return found ? kExitFindings : kExitClean;
}

bool names(const std::vector<std::string>& paths, const std::string& file) {
  return std::any_of(paths.begin(), paths.end(),
                     [&](const std::string& path) { return shown_path(path) == file; });
}

// To standard error; true when a file that was named, not met in a folder, could not be checked.
bool print_notices(const DiagnoseResult& result, const DiagnoseOptions& options) {
  bool refused = false;
  for (const Notice& notice : result.notices) {
    std::fprintf(stderr, "bench: %s: %s\n", notice.unchecked ? "error" : "note",
                 notice_line(notice).c_str());
    refused = refused || (notice.unchecked && names(options.paths, notice.file));
  }
  return refused;
}

// A fix changes what the user named, or what lies in a folder that was named; a module that a named
// script imports is left as it is. The number of fixes taken away.
std::size_t keep_fixes_of_given_files(std::vector<Finding>& findings,
                                      const std::set<std::string>& given) {
  std::size_t left = 0;
  for (Finding& finding : findings) {
    if (!finding.fix) continue;
    const auto& edits = finding.fix->edits;
    if (std::all_of(edits.begin(), edits.end(),
                    [&](const Edit& edit) { return given.contains(edit.file); }))
      continue;
    finding.fix.reset();
    ++left;
  }
  return left;
}

std::string counted(std::size_t number, const std::string& noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : noun == "fix" ? "es" : "s");
}

// Applies or shows fixes until none is left; a fix may make room for the next one.
int run_fixes(Flags& flags) {
  constexpr int kRounds = 8;
  std::set<std::string> given;
  for (const SourceFile& file : find_sources(flags.options.paths)) given.insert(file.path);
  std::size_t elsewhere = 0;
  std::map<std::string, std::string> original;
  std::map<std::string, std::string> current;
  std::size_t applied = 0;
  const auto remember = [&](const std::string& file) {
    if (current.contains(file)) return;
    auto text = read_source(file);
    if (text) original[file] = current[file] = std::move(*text);
  };
  const Reader reader = [&](const std::string& path) {
    const auto known = current.find(path);
    return known != current.end() ? std::optional(known->second) : read_source(path);
  };
  DiagnoseResult result;
  for (int round = 0; round < kRounds; ++round) {
    result = diagnose(flags.options, reader);
    elsewhere = keep_fixes_of_given_files(result.findings, given);
    for (const Finding& finding : result.findings)
      if (finding.fix)
        for (const Edit& edit : finding.fix->edits) remember(edit.file);
    std::size_t now = 0;
    const auto changed = apply_fixes(result.findings, current, now);
    if (now == 0) break;
    applied += now;
    for (const auto& [file, text] : changed) current[file] = text;
  }
  for (const auto& [file, text] : current) {
    if (text == original[file]) continue;
    if (flags.diff) {
      const std::string diff = unified_diff(file, original[file], text);
      std::fwrite(diff.data(), 1, diff.size(), stdout);
    } else {
      write_source(file, text);
    }
  }
  print_notices(result, flags.options);
  std::fprintf(stderr, "%s %s; %s left\n", counted(applied, "fix").c_str(),
               flags.diff ? "shown" : "applied",
               counted(result.findings.size(), "finding").c_str());
  if (elsewhere > 0)
    std::fprintf(stderr, "%s in files that were not given; name them or their folder\n",
                 counted(elsewhere, "fix").c_str());
  return flags.diff && applied > 0 ? kExitFindings : exit_code_of(result.findings);
}

// The rules' findings where `text` stands in place of the file.
std::vector<Finding> findings_with(const DiagnoseOptions& options, const std::string& file,
                                   const std::string& text) {
  DiagnoseOptions alone = options;
  alone.paths = {file};
  alone.selection = {};
  return diagnose(alone,
                  [&](const std::string& path) {
                    return path == file ? std::optional(text) : read_source(path);
                  })
      .findings;
}

int run_to_ddp(Flags& flags) {
  bool any = false;
  for_each_program(flags.options, [&](const Program& program) {
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
      if (flags.fix) write_source(file, rewrite.text);
    }
    std::fwrite(out.data(), 1, out.size(), stdout);
  });
  if (!any) std::puts("no DataParallel call to rewrite");
  return kExitClean;
}

int run_explain_trainer(Flags& flags) {
  bool any = false;
  for_each_program(flags.options, [&](const Program& program) {
    const std::string text = explain_trainer(program);
    any = any || !text.empty();
    std::fwrite(text.data(), 1, text.size(), stdout);
  });
  if (!any) std::puts("no Lightning Trainer found");
  return kExitClean;
}

void add_options(CLI::App& app, Flags& flags) {
  app.add_option("PATH", flags.options.paths, "scripts, notebooks, shell scripts, configs, folders")
      ->required();
  app.add_option("--launch", flags.options.launch, "the command that launches the script");
  app.add_option("--gpus", flags.options.gpus, "number of GPUs it runs on");
  app.add_option("--format", flags.format, "text, json, sarif, github or markdown");
  // One value a flag, with commas within: what follows it are paths.
  app.add_option("--select", flags.options.selection.select, "only these rules")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--ignore", flags.options.selection.ignore, "not these rules")
      ->delimiter(',')
      ->allow_extra_args(false);
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

}  // namespace

int diagnose_command(const std::vector<std::string>& arguments,
                     const CostPredictorFactory& cost_predictor) {
  Flags flags;
  CLI::App app(
      "Reads training scripts, launch lines and configs; says what is wrong, at which line.",
      "bench diagnose");
  add_options(app, flags);
  try {
    parse(arguments, app);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return kExitClean;
  } catch (const CLI::ParseError& error) {
    throw UsageError(std::string("bench diagnose: ") + error.what());
  }
  check_combination(app, flags);
  for (auto* words : {&flags.options.selection.select, &flags.options.selection.ignore})
    for (std::string& word : *words) word = CLI::detail::trim_copy(word);
  const Format* format = find_format(flags.format);
  if (format == nullptr) {
    const auto known = format_names();
    throw UsageError("--format: " + unknown_name_message("value", flags.format, known));
  }
  if (flags.options.gpus.value_or(1) < 1)
    throw UsageError("--gpus: expected a positive number, found " +
                     std::to_string(*flags.options.gpus));
  if (!(flags.parse_limit_seconds > 0 && flags.parse_limit_seconds <= kMostParseSeconds))
    throw UsageError("--parse-limit: expected seconds, more than 0 and at most 3600");
  flags.options.parse_limit =
      std::chrono::microseconds(std::llround(flags.parse_limit_seconds * 1e6));
  apply_settings(flags.config, flags.options);
  if (!flags.severity.empty()) flags.options.selection.at_least = severity_named(flags.severity);
  if (flags.explain_trainer) return run_explain_trainer(flags);
  if (flags.to_ddp) return run_to_ddp(flags);
  if (flags.fix || flags.diff) return run_fixes(flags);
  CostPredictor predict;
  if (flags.cost || !flags.machine.empty()) predict = cost_predictor(flags.machine);
  DiagnoseResult result = diagnose(flags.options);
  if (predict) predict_costs(result.findings, predict);
  const std::string text =
      format->render(result.findings, {result.files, wants_color(), result.notices});
  std::fwrite(text.data(), 1, text.size(), stdout);
  return print_notices(result, flags.options) ? kExitUsage : exit_code_of(result.findings);
}

int explain_command(const std::vector<std::string>& arguments) {
  if (arguments.size() == 1 && arguments.front() == "--index") {
    std::fputs(rules_index().c_str(), stdout);
    return kExitClean;
  }
  if (arguments.size() != 1 || arguments.front().starts_with("-"))
    throw UsageError(
        "bench explain: expected one rule, by id (DDP018) or name (missing-set-epoch)");
  const pitfalls::Rule* rule = pitfalls::find_rule(arguments.front());
  if (rule == nullptr) {
    std::vector<std::string> known;
    for (const auto& each : pitfalls::all_rules()) {
      known.emplace_back(each.name);
      known.emplace_back(each.id);
    }
    throw UsageError("bench explain: " +
                     unknown_name_message("rule", arguments.front(), known, "bench list rules"));
  }
  const std::string text = pitfalls::guide(*rule);
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fputc('\n', stdout);
  return kExitClean;
}

}  // namespace bench::diagnose
