#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/frameworks/trainer.hpp"
#include "scenarios/pitfalls/frameworks/trainer_signature.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::pitfalls {

namespace {

// try: from pytorch_lightning.strategies import NAME; strategy = NAME()
bool is_attempted(const Program& program, const CallRef& made, std::string_view name) {
  const diagnose::Module& module = *made.module;
  const auto guards = program.guards(made.ref());
  if (std::any_of(guards.begin(), guards.end(), [](const diagnose::Guard& guard) {
        return says_any(guard.condition.text(), {"version", "hasattr", "available"});
      }))
    return true;
  const auto is_tried = [&](diagnose::NodeId node) {
    return module.tree().ancestor(node, diagnose::Kind::try_statement) != diagnose::kNoNode;
  };
  const auto& defs = module.defs_of(name, false);
  return is_tried(made.call->node) ||
         std::any_of(defs.begin(), defs.end(),
                     [&](std::uint32_t index) { return is_tried(module.defs()[index].target); });
}

// The first of the argument's values that is a strategy's old name.
std::string removed_name(const Program& program, const trainer::Argument& strategy) {
  for (const diagnose::Value& value : trainer::choices(program, strategy))
    if (value.is_string() && !trainer::strategy_successor(value.string).empty())
      return value.string;
  return {};
}

// HorovodStrategy() of pytorch_lightning.strategies; empty where the import may fail in peace, and
// for classes of other packages.
std::string_view removed_class(const Program& program, const trainer::Argument& strategy) {
  if (!strategy.node || strategy.value.known()) return {};
  for (const diagnose::Source& source : program.sources(strategy.node)) {
    const CallRef made = program.as_call(source.ref);
    if (!made || source.how != diagnose::Source::How::value) continue;
    const std::string_view path = made.call->path;
    const bool is_theirs = path.starts_with("pytorch_lightning.strategies.") ||
                           path.starts_with("lightning.pytorch.strategies.");
    const std::string_view name = path.substr(path.rfind('.') + 1);
    if (is_theirs && !trainer::strategy_class_successor(name).empty() &&
        !is_attempted(program, made, name))
      return name;
  }
  return {};
}

void check_class(const Program& program, const trainer::Argument& strategy, Report& report) {
  const std::string_view name = removed_class(program, strategy);
  if (name.empty()) return;
  Finding& finding =
      trainer::flag(report, strategy, Confidence::likely,
                    std::string(name) + " was removed in Lightning 2.0: ImportError");
  finding.severity = Severity::error;
  finding.help = "Write strategy=" + std::string(trainer::strategy_class_successor(name)) + ".";
  trainer::weigh_by_requirements(program, trainer::kVersion2, finding);
}

}  // namespace

void check_removed_strategy(const Program& program, Report& report) {
  for (const trainer::Use& use : trainer::uses(program)) {
    const auto* strategy = use.find("strategy");
    if (strategy == nullptr) strategy = use.find("distributed_backend");
    if (strategy != nullptr) check_class(program, *strategy, report);
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
