#include "training/pitfalls/table.hpp"

#include "training/pitfalls/experiments.hpp"

namespace bench::training {
namespace {

constexpr ExperimentRow kExperiments[] = {
    {"batch-not-divisible-by-gpus", batch_not_divisible_by_gpus},
    {"data-not-sharded", data_not_sharded},
    {"device-not-bound-to-rank", device_not_bound_to_rank},
    {"gradient-path-bypasses-ddp", gradient_path_bypasses_ddp},
    {"loss-inside-dp-forward", loss_inside_dp_forward},
    {"missing-set-epoch", missing_set_epoch},
    {"needless-unused-search", needless_unused_search},
    {"primary-gpu-imbalance", primary_gpu_imbalance},
    {"rank0-forward-through-wrapper", rank0_forward_through_wrapper},
    {"rank-conditional-collective", rank_conditional_collective},
    {"rank-from-current-device", rank_from_current_device},
    {"rank-local-skip-or-break", rank_local_skip_or_break},
    {"rnn-under-dataparallel", rnn_under_dataparallel},
    {"sampler-pads-or-empties", sampler_pads_or_empties},
    {"second-backward-unsynchronised", second_backward_unsynchronised},
    {"truncating-batch-division", truncating_batch_division},
    {"uneven-batches-per-rank", uneven_batches_per_rank},
    {"unused-parameters", unused_parameters},
};

}  // namespace

std::span<const ExperimentRow> experiments() { return kExperiments; }

const ExperimentRow* find_experiment(std::string_view rule) {
  for (const ExperimentRow& row : kExperiments)
    if (row.rule == rule) return &row;
  return nullptr;
}

}  // namespace bench::training
