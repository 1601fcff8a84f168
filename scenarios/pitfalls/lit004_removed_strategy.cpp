#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/frameworks/trainer.hpp"
#include "scenarios/pitfalls/frameworks/trainer_signature.hpp"

namespace bench::pitfalls {

namespace {

// The first of the argument's values that is a strategy's old name.
std::string removed_name(const Program& program, const trainer::Argument& strategy) {
  for (const diagnose::Value& value : trainer::choices(program, strategy))
    if (value.is_string() && !trainer::strategy_successor(value.string).empty())
      return value.string;
  return {};
}

}  // namespace

void check_removed_strategy(const Program& program, Report& report) {
  for (const trainer::Use& use : trainer::uses(program)) {
    const auto* strategy = use.find("strategy");
    if (strategy == nullptr) strategy = use.find("distributed_backend");
    const std::string name = strategy == nullptr ? "" : removed_name(program, *strategy);
    if (name.empty()) continue;
    const bool is_choice = !strategy->value.known();
    const std::string successor(trainer::strategy_successor(name));
    Finding& finding =
        trainer::flag(report, *strategy, is_choice ? Confidence::likely : Confidence::certain,
                      "strategy=\"" + name + "\"" + (is_choice ? ", one of the choices," : "") +
                          " was removed in Lightning 2.0: ValueError, invalid strategy name");
    finding.help =
        "Write strategy=\"" + successor + "\"" +
        (name == "dp" ? "; the loader's batch size is then that of one device, not the total."
                      : ".");
    trainer::weigh_by_requirements(program, trainer::kVersion2, finding);
    if (name != "dp" && !is_choice && strategy->name == "strategy")
      trainer::fix(use, *strategy, "strategy=\"" + successor + "\"",
                   "Write the strategy that replaced it", finding);
  }
}

}  // namespace bench::pitfalls
