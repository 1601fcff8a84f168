// bench validate: published training steps against what the simulator makes of them.
#include "bench/cli/commands.hpp"
#include "bench/cli/flag_parser.hpp"
#include "bench/cli/worker_lookup.hpp"
#include "bench/core/error.hpp"
#include "bench/predict/validation_text.hpp"
#include "report/run_files.hpp"
#include "simulator/replay.hpp"

#include <charconv>
#include <cstdio>
#include <filesystem>

namespace bench::cli {
namespace {

constexpr std::string_view kGroup = "flags";
constexpr Flag kFlags[] = {
    {"--models", "DIR", "TorchScript files of published models that are not built in", kGroup,
     "models"},
    {"--source", "TEXT", "only published runs whose group or source holds TEXT", kGroup, "DGX-1"},
    {"--limit", "PERCENT", "exit with 1 when the mean error is above this (default: 5)", kGroup,
     "5"},
    {"--format", "text|json|markdown", "what to print", kGroup, "json"},
    {"--out", "FILE", "write it there instead", kGroup, "accuracy.json"},
    {"--recordings", "DIR", "where recorded steps are kept (default: below ~/.cache)", kGroup,
     "recordings"},
    {"--worker", "PROGRAM", "", kGroup, "bench-worker"},
};
constexpr double kDefaultLimitPercent = 5;

double limit_percent(const Typed& typed) {
  const auto text = typed.value("--limit");
  if (!text) return kDefaultLimitPercent;
  double value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error == std::errc() && end == text->data() + text->size() && value > 0) return value;
  throw UsageError("--limit: expected a number above 0, found '" + *text + "'");
}

}  // namespace

int validate_command(const Arguments& arguments) {
  const Typed typed = parse_flags(arguments, kFlags, "bench validate");
  if (!typed.words.empty()) {
    throw UsageError("bench validate: unexpected '" + typed.words[0] + "'; expected flags");
  }
  const double limit = limit_percent(typed);
  const std::string format = choice(typed, "--format", {"text", "json", "markdown"});
  const WorkerProgram worker = find_worker(typed.value("--worker").value_or(""));
  std::vector<std::string> program{worker.path.string()};
  program.insert(program.end(), worker.arguments.begin(), worker.arguments.end());
  RecordingStore store(typed.value("--recordings").value_or(default_recordings().string()),
                       program);
  const std::string source = typed.value("--source").value_or("");
  const std::filesystem::path models = typed.value("--models").value_or("");
  if (!models.empty() && !std::filesystem::is_directory(models)) {
    throw UsageError("--models: expected a directory of TorchScript files, found '" +
                     models.string() + "'");
  }
  const Validation validation =
      validate(store, models, [&](const std::string& group, const std::string& where) {
        return group.find(source) != std::string::npos || where.find(source) != std::string::npos;
      });
  if (validation.rows.empty() && validation.unseen.empty() && validation.ratios.empty()) {
    throw UsageError("bench validate: no published run that can be replayed matches '" + source +
                     "'");
  }
  const std::string text = format == "json"       ? validation_json(validation)
                           : format == "markdown" ? validation_markdown(validation)
                                                  : validation_text(validation);
  if (const auto out = typed.value("--out")) {
    report::write_file_atomically(*out, text);
  } else {
    std::fputs(text.c_str(), stdout);
  }
  const double mean = simulator::summarize(validation.rows).back().mean_error;
  return mean * 100 > limit ? kExitFindings : kExitClean;
}

}  // namespace bench::cli
