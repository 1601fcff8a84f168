#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/frameworks/trainer.hpp"

#include <algorithm>
#include <array>

namespace bench::pitfalls {

namespace {

constexpr int kBackendRemoved = 105;
constexpr int kNameRefused = 107;

bool is_strategy_name(std::string_view name) {
  static constexpr auto kNames = std::to_array<std::string_view>(
      {"dp", "ddp", "ddp_spawn", "ddp_cpu", "ddp2", "horovod", "ddp_sharded",
       "ddp_find_unused_parameters_false", "deepspeed", "fsdp", "ddp_fork"});
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

// The first of the argument's values that is a strategy.
std::string strategy_among(const Program& program, const trainer::Argument* accelerator) {
  if (accelerator == nullptr) return {};
  for (const diagnose::Value& value : trainer::choices(program, *accelerator))
    if (value.is_string() && is_strategy_name(value.string)) return value.string;
  return {};
}

}  // namespace

void check_accelerator_used_as_strategy(const Program& program, Report& report) {
  for (const trainer::Use& use : trainer::uses(program)) {
    if (const auto* backend = use.find("distributed_backend")) {
      Finding& finding =
          trainer::flag(report, *backend, Confidence::certain,
                        "Trainer(distributed_backend=...) was removed in Lightning 1.5");
      finding.help = "Write strategy=" + trainer::spelling(backend->value) + ".";
      trainer::weigh_by_requirements(program, kBackendRemoved, finding);
      if (backend->value.is_string() && backend->value.string != "dp" &&
          use.find("strategy") == nullptr)
        trainer::fix(use, *backend,
                     backend->value.string == "ddp_cpu"
                         ? "strategy=\"ddp_spawn\", accelerator=\"cpu\""
                         : "strategy=\"" + backend->value.string + "\"",
                     "Write strategy", finding);
    }
    const auto* accelerator = use.find("accelerator");
    const std::string name = strategy_among(program, accelerator);
    if (name.empty()) continue;
    const bool is_choice = !accelerator->value.known();
    Finding& finding = trainer::flag(
        report, *accelerator, is_choice ? Confidence::likely : Confidence::certain,
        "accelerator=\"" + name + "\"" + (is_choice ? ", one of the choices," : "") +
            " is a strategy: ValueError, invalid accelerator name, since Lightning 1.7");
    const std::string modern = name == "ddp_cpu" ? "strategy=\"ddp_spawn\", accelerator=\"cpu\""
                                                 : "strategy=\"" + (name == "dp" ? "ddp" : name) +
                                                       "\", accelerator=\"gpu\"";
    finding.help =
        "Write " + modern + (name == "dp" ? " (the batch size is then per device)." : ".");
    trainer::weigh_by_requirements(program, kNameRefused, finding);
    if (name != "dp" && !is_choice && use.find("strategy") == nullptr)
      trainer::fix(use, *accelerator, modern, "Write strategy and accelerator", finding);
  }
}

}  // namespace bench::pitfalls
