#include "diagnose/to_ddp/frameworks.hpp"

#include "diagnose/to_ddp/ddp_mode.hpp"

#include <algorithm>

namespace bench::diagnose {
namespace {

struct Framework {
  Api api;
  std::string_view distributes;
  std::string_view instead;
  bool is_beside_loops;  // also where the script has a training loop of its own
};

constexpr Framework kFrameworks[] = {
    {Api::lightning_trainer, "Lightning's Trainer distributes it",
     "its strategy=\"ddp\" and devices do what this rewrite would", false},
    {Api::lightning_fabric, "Lightning's Fabric distributes it",
     "its strategy=\"ddp\" and devices do what this rewrite would", true},
    {Api::hf_trainer, "the Trainer of Hugging Face distributes it",
     "start it with torchrun, and hand it the model without DataParallel", false},
    {Api::accelerator, "Accelerate distributes it",
     "start it with accelerate launch, and hand prepare() the model without DataParallel", true},
    {Api::hvd_init, "Horovod distributes it", "start it with horovodrun", true},
    {Api::deepspeed, "DeepSpeed distributes it", "start it with deepspeed or torchrun", true},
};

CallRef first_reached(const Program& program, const ReachedCode& reached, Api api) {
  const auto calls = program.calls(api);
  const auto found = std::find_if(calls.begin(), calls.end(),
                                  [&](const CallRef& call) { return reached.has(call); });
  return found == calls.end() ? CallRef{} : *found;
}

bool has_reached_call(const Program& program, const ReachedCode& reached, std::string_view name) {
  const auto& calls = program.calls_named(name);
  return std::any_of(calls.begin(), calls.end(),
                     [&](const CallRef& call) { return reached.has(call); });
}

bool has_own_loop(const Program& program, const ReachedCode& reached) {
  const auto& loops = program.training_loops();
  return std::any_of(loops.begin(), loops.end(),
                     [&](const TrainingLoop& loop) { return reached.has(loop.batches); });
}

// The objects of some are made for other ends: an Accelerator that prepares nothing, a Trainer that
// tests.
bool trains(const Program& program, const ReachedCode& reached, Api api) {
  switch (api) {
    case Api::accelerator:
      return has_reached_call(program, reached, "prepare");
    case Api::lightning_trainer:
      return has_reached_call(program, reached, "fit");
    case Api::hf_trainer:
      return has_reached_call(program, reached, "train");
    default:
      return true;
  }
}

}  // namespace

std::string distributing_framework(const Program& program, const ReachedCode& reached) {
  for (const Framework& each : kFrameworks) {
    const CallRef call = first_reached(program, reached, each.api);
    if (!call || !trains(program, reached, each.api)) continue;
    if (!each.is_beside_loops && has_own_loop(program, reached)) continue;
    return std::string(each.distributes) + " " + place_in_brackets(program, call.ref()) + ": " +
           std::string(each.instead);
  }
  // A wrapper of mmcv's own.
  for (const CallRef& call : program.calls_named("MMDataParallel"))
    if (!program.has_data_parallel() && reached.has(call))
      return "wraps in mmcv's MMDataParallel " + place_in_brackets(program, call.ref()) +
             ", not in torch's DataParallel: MMDistributedDataParallel and init_dist() of mmcv "
             "take "
             "its place";
  return {};
}

}  // namespace bench::diagnose
