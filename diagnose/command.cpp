#include "diagnose/command.hpp"

#include "bench/core/error.hpp"
#include "bench/core/nearest.hpp"
#include "diagnose/command/add_ignores.hpp"
#include "diagnose/command/fixes.hpp"
#include "diagnose/command/flags.hpp"
#include "diagnose/command/kept_inputs.hpp"
#include "diagnose/command/programs.hpp"
#include "diagnose/command/result_output.hpp"
#include "diagnose/command/verdict.hpp"
#include "diagnose/driver/baseline.hpp"
#include "diagnose/driver/diagnose.hpp"
#include "diagnose/driver/repository.hpp"
#include "diagnose/driver/source_files.hpp"
#include "diagnose/output/index.hpp"
#include "diagnose/output/render.hpp"
#include "scenarios/pitfalls/page.hpp"
#include "scenarios/pitfalls/registry.hpp"

#include <cstdio>
#include <optional>

namespace bench::diagnose {
namespace {

RenderContext context_of(const DiagnoseResult& result, const DiagnoseOptions& options,
                         const ResultOutput& output) {
  RenderContext context{result.files, output.wants_color(), result.notices};
  RepositoryPaths paths;
  for (const Finding& finding : result.findings)
    context.repository_paths.try_emplace(finding.file, paths.of(finding.file));
  context.launched = paths.of(shown_path(options.paths.front()));
  return context;
}

int run_rules(const Flags& flags, ResultOutput& output,
              const CostPredictorFactory& cost_predictor) {
  CostPredictor predict;
  if (flags.cost || !flags.machine.empty()) predict = cost_predictor(flags.machine);
  std::optional<Baseline> baseline;
  if (flags.baseline) baseline.emplace(*flags.baseline);
  DiagnoseResult result = diagnose(flags.options);
  const std::size_t known = baseline ? baseline->take_known(result) : 0;
  if (predict) predict_costs(result.findings, predict);
  const auto render = flags.statistics ? render_statistics : find_format(flags.format)->render;
  output.write(render(result.findings, context_of(result, flags.options, output)));
  const bool refused = print_notices(result.notices, flags.options);
  if (baseline) print_known(*flags.baseline, known, baseline->gone(result, flags.options));
  return refused ? kExitUsage : exit_code_of(result.findings);
}

int run_action(const Flags& flags, ResultOutput& output,
               const CostPredictorFactory& cost_predictor) {
  if (flags.explain_trainer) return run_explain_trainer(flags, output);
  if (flags.to_ddp) return run_to_ddp(flags, output);
  if (flags.add_ignores) return run_add_ignores(flags, output);
  if (flags.fix || flags.diff) return run_fixes(flags, output);
  return run_rules(flags, output, cost_predictor);
}

}  // namespace

int diagnose_command(const std::vector<std::string>& arguments,
                     const CostPredictorFactory& cost_predictor) {
  const std::optional<Flags> flags = read_flags(arguments);
  if (!flags) return kExitClean;
  check_inputs_are_kept(*flags);
  ResultOutput output(flags->output_file);
  const int code = run_action(*flags, output, cost_predictor);
  output.finish();
  return code == kExitFindings && flags->exit_zero ? kExitClean : code;
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
