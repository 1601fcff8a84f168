#include "diagnose/command.hpp"

#include "bench/core/error.hpp"
#include "bench/core/nearest.hpp"
#include "diagnose/command/fixes.hpp"
#include "diagnose/command/flags.hpp"
#include "diagnose/command/programs.hpp"
#include "diagnose/command/verdict.hpp"
#include "diagnose/driver/diagnose.hpp"
#include "diagnose/output/index.hpp"
#include "diagnose/output/render.hpp"
#include "scenarios/pitfalls/page.hpp"
#include "scenarios/pitfalls/registry.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace bench::diagnose {
namespace {

bool wants_color() { return ::isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr; }

int run_rules(const Flags& flags, const CostPredictorFactory& cost_predictor) {
  CostPredictor predict;
  if (flags.cost || !flags.machine.empty()) predict = cost_predictor(flags.machine);
  DiagnoseResult result = diagnose(flags.options);
  if (predict) predict_costs(result.findings, predict);
  const std::string text =
      find_format(flags.format)
          ->render(result.findings, {result.files, wants_color(), result.notices});
  std::fwrite(text.data(), 1, text.size(), stdout);
  return print_notices(result, flags.options) ? kExitUsage : exit_code_of(result.findings);
}

}  // namespace

int diagnose_command(const std::vector<std::string>& arguments,
                     const CostPredictorFactory& cost_predictor) {
  const std::optional<Flags> flags = read_flags(arguments);
  if (!flags) return kExitClean;
  if (flags->explain_trainer) return run_explain_trainer(*flags);
  if (flags->to_ddp) return run_to_ddp(*flags);
  if (flags->fix || flags->diff) return run_fixes(*flags);
  return run_rules(*flags, cost_predictor);
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
