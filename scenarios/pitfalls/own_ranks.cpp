#include "scenarios/pitfalls/own_ranks.hpp"

#include "scenarios/pitfalls/facts.hpp"
#include "scenarios/pitfalls/trainer.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Value;

namespace {

// 4, -1, [0, 1], "0,1", "auto", torch.cuda.device_count().
bool are_several(const trainer::Argument& devices) {
  const Value& value = devices.value;
  if (value.is_integer()) return value.integer > 1 || value.integer == -1;
  if (value.type == Value::Type::list) return value.items.size() > 1;
  if (value.is_string())
    return value.string == "-1" || value.string == "auto" ||
           (facts::contains(value.string, ",") && !value.string.ends_with(','));  // "0," is one
  return devices.node && facts::contains(devices.node.text(), "device_count()");
}

// "ddp", "ddp_find_unused_parameters_true", DDPStrategy(...); not "ddp_spawn".
bool names_ddp(const trainer::Argument* strategy) {
  if (strategy == nullptr) return false;
  if (!strategy->value.is_string())
    return strategy->node && facts::contains(strategy->node.text(), "DDPStrategy(") &&
           !facts::contains(strategy->node.text(), "spawn");
  const std::string& name = strategy->value.string;
  return name.starts_with("ddp") && !name.starts_with("ddp_spawn");
}

bool computes_elsewhere(const trainer::Argument* accelerator) {
  return accelerator != nullptr && accelerator->value.is_string() &&
         (accelerator->value.string == "cpu" || accelerator->value.string == "tpu");
}

bool starts_ranks(const trainer::Use& use) {
  if (!use.call) return false;
  if (computes_elsewhere(use.find("accelerator"))) return false;
  const bool ddp = names_ddp(use.find("strategy")) || names_ddp(use.find("accelerator")) ||
                   names_ddp(use.find("distributed_backend"));
  const trainer::Argument* devices = use.find("devices");
  if (devices == nullptr) devices = use.find("gpus");
  return ddp && devices != nullptr && are_several(*devices);
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
  return std::any_of(uses.begin(), uses.end(), starts_ranks);
}

}  // namespace bench::pitfalls
