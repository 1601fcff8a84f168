#include "scenarios/pitfalls/own_ranks.hpp"

#include "scenarios/pitfalls/facts.hpp"
#include "scenarios/pitfalls/trainer.hpp"

#include <algorithm>

namespace bench::pitfalls {

namespace {

// "ddp" stood under two other names in older versions.
const trainer::Argument* strategy_of(const trainer::Use& use) {
  for (const std::string_view name : {"strategy", "distributed_backend"})
    if (const trainer::Argument* strategy = use.find(name)) return strategy;
  const trainer::Argument* accelerator = use.find("accelerator");
  const bool ddp = accelerator != nullptr && accelerator->value.is_string() &&
                   accelerator->value.string.starts_with("ddp");
  return ddp ? accelerator : nullptr;
}

// The older versions took the CPU where no GPUs were named.
bool asks_for_gpus(const trainer::Use& use) {
  const trainer::Argument* gpus = use.find("gpus");
  return gpus != nullptr && gpus->value.type != diagnose::Value::Type::none &&
         !(gpus->value.is_integer() && gpus->value.integer == 0) && !trainer::is_one(gpus);
}

// Whether the Trainer starts several processes that all run the script to its end: "ddp", or "auto"
// on the devices that there are. What spawns comes back to one, and FSDP gathers on every rank.
bool starts_several(const trainer::Use& use) {
  const auto* strategy = strategy_of(use);
  const auto* devices = use.find("devices");
  const auto* accelerator = use.find("accelerator");
  if (!use.call || strategy == nullptr || !strategy->node || trainer::is_one(devices) ||
      (strategy->name != "strategy" && !asks_for_gpus(use)) || trainer::is_one(use.find("gpus")) ||
      (accelerator != nullptr && accelerator->value.is_string() &&
       accelerator->value.string == "cpu"))
    return false;
  const std::string text =
      facts::lowered(strategy->node.text()) + " " + facts::lowered(strategy->value.string);
  for (const std::string_view word : {"spawn", "fork", "notebook", "fsdp", "deepspeed", "single"})
    if (facts::contains(text, word)) return false;
  return facts::contains(text, "ddp") ||
         (facts::contains(text, "auto") && (devices != nullptr || use.find("num_nodes")));
}

}  // namespace

bool has_ranks_of_its_own(const Program& program) {
  if (!program.uses(diagnose::Api::hvd_init))
    return facts::is_distributed(program) && !program.framework_distributes();
  for (const std::string_view package : {"pytorch_lightning", "lightning", "accelerate"})
    if (program.imports(package)) return false;
  return program.uses(diagnose::Api::ddp) || !program.imports("ray");
}

bool has_lightning_ranks(const Program& program) {
  const std::vector<trainer::Use> uses = trainer::uses(program);
  return std::any_of(uses.begin(), uses.end(), starts_several);
}

}  // namespace bench::pitfalls
