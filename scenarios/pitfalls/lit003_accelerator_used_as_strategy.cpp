#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/trainer.hpp"

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
    if (accelerator == nullptr) continue;
    const auto names = trainer::written_strings(program, *accelerator);
    const auto found = std::find_if(names.begin(), names.end(), is_strategy_name);
    if (found == names.end()) continue;
    const std::string& name = *found;
    Finding& finding = trainer::flag(
        report, *accelerator, Confidence::certain,
        "accelerator=\"" + name +
            "\" is a strategy: ValueError, invalid accelerator name, since Lightning 1.7");
    const std::string modern = name == "ddp_cpu" ? "strategy=\"ddp_spawn\", accelerator=\"cpu\""
                                                 : "strategy=\"" + (name == "dp" ? "ddp" : name) +
                                                       "\", accelerator=\"gpu\"";
    finding.help =
        "Write " + modern + (name == "dp" ? " (the batch size is then per device)." : ".");
    trainer::weigh_by_requirements(program, kNameRefused, finding);
    if (name != "dp" && use.find("strategy") == nullptr && accelerator->value.is_string())
      trainer::fix(use, *accelerator, modern, "Write strategy and accelerator", finding);
  }
}

}  // namespace bench::pitfalls
