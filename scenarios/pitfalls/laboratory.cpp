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
    {"needless-unused-search", "", 2, one_per_gpu, shared,
     "find_unused_parameters=True where every parameter is used", "leave the flag at False",
     price_needless_unused_search},
    {"batch-not-divisible-by-gpus", "six-on-four", 4, one, shared,
     "DataParallel on 4 GPUs with batches of 6", "a multiple of the GPU count",
     price_batch_not_divisible_by_gpus},
    {"batch-not-divisible-by-gpus", "nine-on-eight", 8, one, shared,
     "DataParallel on 8 GPUs with batches of 9", "a multiple of the GPU count",
     price_batch_not_divisible_by_gpus},
    {"batch-not-divisible-by-gpus", "short-last-batch", 4, one, shared,
     "18 samples in batches of 8 on 4 GPUs: the last batch has 2",
     "drop_last=True, or a length that divides", price_batch_not_divisible_by_gpus},
    {"batch-not-divisible-by-gpus", "fewer-than-gpus", 4, one, shared,
     "DataParallel on 4 GPUs with batches of 3", "at least one sample for each GPU",
     price_batch_not_divisible_by_gpus},
    {"rnn-under-dataparallel", "", 2, one, shared,
     "a hidden state (layers, batch, features) passed to DataParallel",
     "batch first, turned inside forward", price_rnn_under_dataparallel},
    {"truncating-batch-division", "", 4, one_per_gpu, shared,
     "batch // world_size for a batch of 10 on 4 ranks",
     "a batch that divides, or hand the remainder out", price_truncating_batch_division},
    {"primary-gpu-imbalance", "", 4, one, shared,
     "wide outputs gathered on the primary GPU, the loss outside the model",
     "DDP; or the loss inside forward, averaged outside", price_primary_gpu_imbalance},
    {"loss-inside-dp-forward", "vector", 2, one, shared,
     "backward on the vector of losses that DataParallel gathers", "loss.mean() before backward",
     price_loss_inside_dp_forward},
    {"loss-inside-dp-forward", "summed", 2, one, shared,
     "the sum of the losses that DataParallel gathers", "loss.mean() before backward",
     price_loss_inside_dp_forward},
    {"data-not-sharded", "", 2, one_per_gpu, shared,
     "no DistributedSampler: every rank reads the whole data set", "a DistributedSampler",
     price_data_not_sharded},
    {"sampler-pads-or-empties", "pads", 4, one_per_gpu, shared,
     "10 validation samples on 4 ranks through DistributedSampler",
     "unpadded shards, sums and counts all-reduced", price_sampler_pads_or_empties},
    {"sampler-pads-or-empties", "empties", 4, one_per_gpu, shared,
     "3 validation samples on 4 ranks with drop_last=True",
     "unpadded shards, sums and counts all-reduced", price_sampler_pads_or_empties},
    {"uneven-batches-per-rank", "", 2, one_per_gpu, own, "one rank has a batch more than the other",
     "stop all ranks together (join, or truncate)", price_uneven_batches_per_rank},
    {"rank-local-skip-or-break", "", 2, one_per_gpu, own,
     "one rank skips a batch whose loss is not a number", "all-reduce the flag, skip on all ranks",
     price_rank_local_skip_or_break},
    {"rank-conditional-collective", "one-rank-only", 2, one_per_gpu, own,
     "an all-reduce under `if rank == 0`", "every rank takes part",
     price_rank_conditional_collective},
    {"rank-conditional-collective", "different-order", 2, one_per_gpu, own,
     "two collectives in another order on one rank", "the same order everywhere",
     price_rank_conditional_collective},
    {"rank-conditional-collective", "barrier-skipped", 2, one_per_gpu, own,
     "one rank returns before the barrier", "every rank takes part",
     price_rank_conditional_collective},
    {"rank0-forward-through-wrapper", "", 2, one_per_gpu, own,
     "rank 0 validates through the wrapper of a model with buffers", "validate through ddp.module",
     price_rank0_forward_through_wrapper},
    {"rank-from-current-device", "", 2, one_per_gpu, shared,
     "the rank is the current device, which nobody has set", "dist.get_rank()",
     price_rank_from_current_device},
    {"device-not-bound-to-rank", "", 2, one_per_gpu, shared,
     "no set_device: every rank works on GPU 0", "torch.cuda.set_device(local_rank) first",
     price_device_not_bound_to_rank},
    {"gradient-path-bypasses-ddp", "", 2, one_per_gpu, shared,
     "the training forward calls ddp.module(x)", "call ddp(x)", price_gradient_path_bypasses_ddp},
    {"second-backward-unsynchronised", "two-losses", 2, one_per_gpu, shared,
     "loss1.backward() and loss2.backward() over one forward pass", "add the losses, one backward",
     price_second_backward_unsynchronised},
    {"second-backward-unsynchronised", "retain-graph", 2, one_per_gpu, shared,
     "backward(retain_graph=True), then backward again", "one backward",
     price_second_backward_unsynchronised},
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
