#include "diagnose/command.hpp"

#include "bench/core/error.hpp"
#include "bench/core/nearest.hpp"
#include "diagnose/driver/diagnose.hpp"
#include "diagnose/output/render.hpp"
#include "scenarios/pitfalls/page.hpp"
#include "scenarios/pitfalls/registry.hpp"

#include <CLI/CLI.hpp>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace bench::diagnose {
namespace {

struct Flags {
  DiagnoseOptions options;
  std::string format = "text";
  std::string severity = "info";
};

Severity severity_named(const std::string& name) {
  for (const Severity severity : {Severity::info, Severity::warning, Severity::error})
    if (name_of(severity) == name) return severity;
  const std::vector<std::string> known{"info", "warning", "error"};
  throw UsageError(unknown_name_message("--severity", name, known));
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

}  // namespace

int diagnose_command(const std::vector<std::string>& arguments) {
  Flags flags;
  CLI::App app(
      "Reads training scripts, launch lines and configs; says what is wrong, at which line.",
      "bench diagnose");
  app.add_option("PATH", flags.options.paths, "scripts, notebooks, shell scripts, configs, folders")
      ->required();
  app.add_option("--launch", flags.options.launch, "the command that launches the script");
  app.add_option("--gpus", flags.options.gpus, "number of GPUs it runs on");
  app.add_option("--format", flags.format, "text, json, sarif, github or markdown");
  app.add_option("--select", flags.options.selection.select, "only these rules")->delimiter(',');
  app.add_option("--ignore", flags.options.selection.ignore, "not these rules")->delimiter(',');
  app.add_option("--severity", flags.severity, "least severity shown: info, warning or error");
  app.add_option("--threads", flags.options.threads, "worker threads; default: one a core");
  try {
    parse(arguments, app);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return kExitClean;
  } catch (const CLI::ParseError& error) {
    throw UsageError(std::string("bench diagnose: ") + error.what());
  }
  const Format* format = find_format(flags.format);
  if (format == nullptr) {
    const auto known = format_names();
    throw UsageError(unknown_name_message("--format", flags.format, known));
  }
  flags.options.selection.at_least = severity_named(flags.severity);
  const DiagnoseResult result = diagnose(flags.options);
  const std::string text = format->render(result.findings, {result.files, wants_color()});
  std::fwrite(text.data(), 1, text.size(), stdout);
  return exit_code_of(result.findings);
}

int explain_command(const std::vector<std::string>& arguments) {
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
    throw UsageError(unknown_name_message("rule", arguments.front(), known));
  }
  const std::string text = pitfalls::guide(*rule);
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fputc('\n', stdout);
  return kExitClean;
}

}  // namespace bench::diagnose
