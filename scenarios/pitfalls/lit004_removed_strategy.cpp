#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/trainer.hpp"
#include "scenarios/pitfalls/trainer_signature.hpp"

namespace bench::pitfalls {

void check_removed_strategy(const Program& program, Report& report) {
  for (const trainer::Use& use : trainer::uses(program)) {
    const auto* strategy = use.find("strategy");
    if (strategy == nullptr) strategy = use.find("distributed_backend");
    if (strategy == nullptr || !strategy->value.is_string() ||
        trainer::strategy_successor(strategy->value.string).empty())
      continue;
    const std::string& name = strategy->value.string;
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
    if (name != "dp" && strategy->name == "strategy")
      trainer::fix(use, *strategy, "strategy=\"" + successor + "\"",
                   "Write the strategy that replaced it", finding);
  }
}

}  // namespace bench::pitfalls
