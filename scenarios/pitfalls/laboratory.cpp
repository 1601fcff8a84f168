#include "scenarios/pitfalls/laboratory.hpp"

#include "bench/core/error.hpp"
#include "bench/core/nearest.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/registry.hpp"

#include <algorithm>

namespace bench::pitfalls {
namespace {

using enum Processes;
using enum Isolation;

constexpr Trial kTrials[] = {
    {"missing-set-epoch", "", 2, one_per_gpu, shared,
     "no set_epoch call on the shuffling DistributedSampler",
     "call sampler.set_epoch(epoch) before each epoch", price_missing_set_epoch},
    {"unused-parameters", "", 2, one_per_gpu, shared,
     "a layer that the loss does not reach, find_unused_parameters left False",
     "remove the layer, or find_unused_parameters=True", price_unused_parameters},
    {"batch-not-divisible-by-gpus", "six-on-four", 4, one, shared,
     "DataParallel on 4 GPUs with batches of 6", "a multiple of the GPU count",
     price_batch_not_divisible_by_gpus},
    {"batch-not-divisible-by-gpus", "nine-on-eight", 8, one, shared,
     "DataParallel on 8 GPUs with batches of 9", "a multiple of the GPU count",
     price_batch_not_divisible_by_gpus},
    {"uneven-batches-per-rank", "", 2, one_per_gpu, own, "one rank has a batch more than the other",
     "stop all ranks together (join, or truncate)", price_uneven_batches_per_rank},
};

}  // namespace

std::string title_of(const Trial& trial) {
  return std::string(trial.rule) + (trial.form.empty() ? "" : "/form:" + std::string(trial.form));
}

std::span<const Trial> all_trials() { return kTrials; }

std::vector<const Trial*> select_trials(const std::vector<std::string>& names) {
  std::vector<std::string> known;
  for (const Trial& trial : all_trials())
    if (known.empty() || known.back() != trial.rule) known.emplace_back(trial.rule);
  std::vector<std::string> wanted;
  for (const std::string& name : names) {
    const Rule* rule = find_rule(name);
    wanted.emplace_back(rule == nullptr ? name : std::string(rule->name));
    if (std::find(known.begin(), known.end(), wanted.back()) == known.end())
      throw UsageError(unknown_name_message("pitfall of the laboratory", name, known));
  }
  std::vector<const Trial*> chosen;
  for (const Trial& trial : all_trials()) {
    const bool asked = std::find(wanted.begin(), wanted.end(), trial.rule) != wanted.end();
    if (wanted.empty() || asked) chosen.push_back(&trial);
  }
  return chosen;
}

}  // namespace bench::pitfalls
