#include "scenarios/pitfalls/registry.hpp"

#include "scenarios/pitfalls/checks.hpp"

namespace bench::pitfalls {
namespace {

using enum Category;
using enum Severity;
using enum Evidence;

constexpr Rule kRules[] = {
    {"DP001", "dataparallel-multi-gpu", throughput, info, full, full, check_dataparallel_multi_gpu},
    {"DP002", "module-not-on-first-device", correctness, error, partial, full,
     check_module_not_on_first_device},
    {"DP003", "device-id-not-visible", portability, error, partial, full,
     check_device_id_not_visible},
    {"DP004", "batch-not-divisible-by-gpus", throughput, warning, partial, full,
     check_batch_not_divisible_by_gpus},
    {"DP005", "unequal-leading-dims-in-inputs", correctness, error, none, full, nullptr},
    {"DP006", "list-input-split-wrongly", correctness, error, partial, full,
     check_list_input_split_wrongly},
    {"DP007", "rnn-under-dataparallel", correctness, warning, partial, full,
     check_rnn_under_dataparallel},
    {"DP008", "loss-inside-dp-forward", correctness, error, partial, full,
     check_loss_inside_dp_forward},
    {"DP009", "state-mutated-in-forward", correctness, warning, full, full,
     check_state_mutated_in_forward},
    {"DP010", "output-without-batch-dim", correctness, error, none, full, nullptr},
    {"DP011", "ungatherable-output", correctness, error, partial, full, check_ungatherable_output},
    {"DP012", "primary-gpu-imbalance", memory, warning, partial, full, check_primary_gpu_imbalance},
    {"DP013", "batchnorm-under-dataparallel", correctness, warning, full, full,
     check_batchnorm_under_dataparallel},
    {"DP014", "autocast-dtype-lost-in-replicas", correctness, error, full, full,
     check_autocast_dtype_lost_in_replicas},
    {"DP015", "hard-coded-device-in-forward", correctness, error, full, full,
     check_hard_coded_device_in_forward},
    {"DP016", "parameters-empty-in-replica", correctness, error, full, full,
     check_parameters_empty_in_replica},
    {"DP017", "hard-coded-device-list", portability, warning, full, none,
     check_hard_coded_device_list},
    {"DDP001", "unused-parameters", correctness, error, partial, full, check_unused_parameters},
    {"DDP002", "needless-unused-search", throughput, warning, partial, full,
     check_needless_unused_search},
    {"DDP003", "static-graph-changes", correctness, error, partial, full,
     check_static_graph_changes},
    {"DDP004", "device-ids-mismatch", correctness, error, full, full, check_device_ids_mismatch},
    {"DDP005", "use-before-init-process-group", correctness, error, full, full,
     check_use_before_init_process_group},
    {"DDP006", "parameters-changed-after-wrap", correctness, error, full, full,
     check_parameters_changed_after_wrap},
    {"DDP007", "gradient-path-bypasses-ddp", correctness, error, full, full,
     check_gradient_path_bypasses_ddp},
    {"DDP008", "second-backward-unsynchronised", correctness, error, full, full,
     check_second_backward_unsynchronised},
    {"DDP009", "no-sync-scope", correctness, error, full, full, check_no_sync_scope},
    {"DDP010", "accumulation-without-no-sync", throughput, warning, full, full,
     check_accumulation_without_no_sync},
    {"DDP011", "two-forwards-one-backward-with-buffers", correctness, error, partial, full,
     check_two_forwards_one_backward_with_buffers},
    {"DDP012", "wrapper-indirection", portability, error, full, full, check_wrapper_indirection},
    {"DDP013", "rank0-forward-through-wrapper", hang, error, full, full,
     check_rank0_forward_through_wrapper},
    {"DDP014", "rank-conditional-collective", hang, error, full, full,
     check_rank_conditional_collective},
    {"DDP015", "rank-local-skip-or-break", hang, error, full, full, check_rank_local_skip_or_break},
    {"DDP016", "uneven-batches-per-rank", hang, error, partial, full,
     check_uneven_batches_per_rank},
    {"DDP017", "data-not-sharded", correctness, error, full, full, check_data_not_sharded},
    {"DDP018", "missing-set-epoch", correctness, warning, full, full, check_missing_set_epoch},
    {"DDP019", "sampler-argument-conflict", correctness, error, full, full,
     check_sampler_argument_conflict},
    {"DDP020", "sampler-rank-is-local-rank", correctness, error, full, full,
     check_sampler_rank_is_local_rank},
};

}  // namespace

std::span<const Rule> all_rules() { return kRules; }

const Rule* find_rule(std::string_view id_or_name) {
  for (const Rule& rule : kRules)
    if (rule.id == id_or_name || rule.name == id_or_name) return &rule;
  return nullptr;
}

}  // namespace bench::pitfalls
