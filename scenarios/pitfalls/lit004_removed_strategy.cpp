#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/trainer.hpp"

#include <algorithm>
#include <array>

namespace bench::pitfalls {

namespace {

bool is_removed_strategy(std::string_view name) {
  static constexpr auto kNames = std::to_array<std::string_view>(
      {"dp", "ddp2", "horovod", "bagua", "ddp_sharded", "ddp_sharded_spawn", "fsdp_native",
       "ddp_fully_sharded", "hivemind", "collaborative"});
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

std::string successor_of(std::string_view name) {
  if (name == "fsdp_native" || name == "ddp_fully_sharded" || name == "ddp_sharded" ||
      name == "ddp_sharded_spawn")
    return "fsdp";
  return "ddp";
}

}  // namespace

void check_removed_strategy(const Program& program, Report& report) {
  for (const trainer::Use& use : trainer::uses(program)) {
    const auto* strategy = use.find("strategy");
    if (strategy == nullptr) strategy = use.find("distributed_backend");
    if (strategy == nullptr || !strategy->value.is_string() ||
        !is_removed_strategy(strategy->value.string))
      continue;
    const std::string& name = strategy->value.string;
    Finding& finding =
        trainer::flag(report, *strategy, Confidence::certain,
                      "strategy=\"" + name +
                          "\" was removed in Lightning 2.0: ValueError, invalid strategy name");
    finding.help =
        "Write strategy=\"" + successor_of(name) + "\"" +
        (name == "dp" ? "; the loader's batch size is then that of one device, not the total."
                      : ".");
    if (name != "dp" && strategy->name == "strategy")
      trainer::fix(*strategy, "strategy=\"" + successor_of(name) + "\"",
                   "Write the strategy that replaced it", finding);
  }
}

}  // namespace bench::pitfalls
