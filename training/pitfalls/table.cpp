#include "training/pitfalls/table.hpp"

#include "training/pitfalls/experiments.hpp"
#include "training/pitfalls/state_experiments.hpp"

namespace bench::training {
namespace {

constexpr ExperimentRow kExperiments[] = {
    {"accumulation-without-no-sync", accumulation_without_no_sync},
    {"batch-not-divisible-by-gpus", batch_not_divisible_by_gpus},
    {"batch-size-not-divided", batch_size_not_divided},
    {"batchnorm-not-synchronised", batchnorm_not_synchronised},
    {"batchnorm-under-dataparallel", batchnorm_under_dataparallel},
    {"bucket-configuration", bucket_configuration},
    {"data-not-sharded", data_not_sharded},
    {"device-not-bound-to-rank", device_not_bound_to_rank},
    {"grad-stride-mismatch", grad_stride_mismatch},
    {"gradient-clip-before-unscale", gradient_clip_before_unscale},
    {"gradient-path-bypasses-ddp", gradient_path_bypasses_ddp},
    {"hidden-straggler", hidden_straggler},
    {"list-input-split-wrongly", list_input_split_wrongly},
    {"load-without-map-location", load_without_map_location},
    {"loader-oversubscription", loader_oversubscription},
    {"loss-inside-dp-forward", loss_inside_dp_forward},
    {"loss-or-lr-scaling", loss_or_lr_scaling},
    {"metric-not-reduced", metric_not_reduced},
    {"missing-set-epoch", missing_set_epoch},
    {"needless-unused-search", needless_unused_search},
    {"no-grad-training-forward", no_grad_training_forward},
    {"no-sync-scope", no_sync_scope},
    {"one-rank-state-change", one_rank_state_change},
    {"optimizer-before-device-move", optimizer_before_device_move},
    {"output-without-batch-dim", output_without_batch_dim},
    {"parameters-changed-after-wrap", parameters_changed_after_wrap},
    {"primary-gpu-imbalance", primary_gpu_imbalance},
    {"rank0-forward-through-wrapper", rank0_forward_through_wrapper},
    {"rank-conditional-collective", rank_conditional_collective},
    {"rank-from-current-device", rank_from_current_device},
    {"rank-local-skip-or-break", rank_local_skip_or_break},
    {"rank-seeding", rank_seeding},
    {"rendezvous-misconfigured", rendezvous_misconfigured},
    {"rnn-under-dataparallel", rnn_under_dataparallel},
    {"sampler-pads-or-empties", sampler_pads_or_empties},
    {"save-on-every-rank", save_on_every_rank},
    {"save-with-module-prefix", save_with_module_prefix},
    {"sampler-rank-is-local-rank", sampler_rank_is_local_rank},
    {"second-backward-unsynchronised", second_backward_unsynchronised},
    {"static-graph-changes", static_graph_changes},
    {"truncating-batch-division", truncating_batch_division},
    {"two-forwards-one-backward-with-buffers", two_forwards_one_backward_with_buffers},
    {"unequal-leading-dims-in-inputs", unequal_leading_dims_in_inputs},
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
