#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/trainer.hpp"
#include "scenarios/pitfalls/trainer_signature.hpp"

#include <algorithm>

namespace bench::pitfalls {

void check_removed_strategy(const Program& program, Report& report) {
  for (const trainer::Use& use : trainer::uses(program)) {
    const auto* strategy = use.find("strategy");
    if (strategy == nullptr) strategy = use.find("distributed_backend");
    if (strategy == nullptr) continue;
    const auto names = trainer::written_strings(program, *strategy);
    const auto removed = std::find_if(names.begin(), names.end(), [](const std::string& name) {
      return !trainer::strategy_successor(name).empty();
    });
    if (removed == names.end()) continue;
    const std::string& name = *removed;
    const std::string successor(trainer::strategy_successor(name));
    Finding& finding =
        trainer::flag(report, *strategy, Confidence::certain,
                      "strategy=\"" + name +
                          "\" was removed in Lightning 2.0: ValueError, invalid strategy name");
    finding.help =
        "Write strategy=\"" + successor + "\"" +
        (name == "dp" ? "; the loader's batch size is then that of one device, not the total."
                      : ".");
    trainer::weigh_by_requirements(program, trainer::kVersion2, finding);
    if (name != "dp" && strategy->name == "strategy" && strategy->value.is_string())
      trainer::fix(use, *strategy, "strategy=\"" + successor + "\"",
                   "Write the strategy that replaced it", finding);
  }
}

}  // namespace bench::pitfalls
