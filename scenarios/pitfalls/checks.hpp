// The checks of static evidence, one line a rule. Each lives in the file that is named after it.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

void check_dataparallel_multi_gpu(const Program& program, Report& report);
void check_module_not_on_first_device(const Program& program, Report& report);
void check_device_id_not_visible(const Program& program, Report& report);
void check_batch_not_divisible_by_gpus(const Program& program, Report& report);
void check_list_input_split_wrongly(const Program& program, Report& report);
void check_rnn_under_dataparallel(const Program& program, Report& report);
void check_loss_inside_dp_forward(const Program& program, Report& report);
void check_state_mutated_in_forward(const Program& program, Report& report);
void check_ungatherable_output(const Program& program, Report& report);
void check_primary_gpu_imbalance(const Program& program, Report& report);
void check_batchnorm_under_dataparallel(const Program& program, Report& report);
void check_autocast_dtype_lost_in_replicas(const Program& program, Report& report);
void check_hard_coded_device_in_forward(const Program& program, Report& report);
void check_parameters_empty_in_replica(const Program& program, Report& report);
void check_hard_coded_device_list(const Program& program, Report& report);
void check_unused_parameters(const Program& program, Report& report);
void check_needless_unused_search(const Program& program, Report& report);
void check_static_graph_changes(const Program& program, Report& report);
void check_device_ids_mismatch(const Program& program, Report& report);
void check_use_before_init_process_group(const Program& program, Report& report);
void check_parameters_changed_after_wrap(const Program& program, Report& report);
void check_gradient_path_bypasses_ddp(const Program& program, Report& report);
void check_second_backward_unsynchronised(const Program& program, Report& report);
void check_no_sync_scope(const Program& program, Report& report);
void check_accumulation_without_no_sync(const Program& program, Report& report);
void check_two_forwards_one_backward_with_buffers(const Program& program, Report& report);
void check_wrapper_indirection(const Program& program, Report& report);
void check_rank0_forward_through_wrapper(const Program& program, Report& report);
void check_rank_conditional_collective(const Program& program, Report& report);
void check_rank_local_skip_or_break(const Program& program, Report& report);
void check_uneven_batches_per_rank(const Program& program, Report& report);
void check_data_not_sharded(const Program& program, Report& report);
void check_missing_set_epoch(const Program& program, Report& report);
void check_sampler_argument_conflict(const Program& program, Report& report);
void check_sampler_rank_is_local_rank(const Program& program, Report& report);
void check_sampler_pads_or_empties(const Program& program, Report& report);
void check_metric_not_reduced(const Program& program, Report& report);
void check_non_differentiable_all_gather(const Program& program, Report& report);
void check_loss_or_lr_scaling(const Program& program, Report& report);
void check_device_not_bound_to_rank(const Program& program, Report& report);
void check_checkpoint_io_unguarded(const Program& program, Report& report);
void check_one_rank_state_change(const Program& program, Report& report);
void check_reentrant_checkpoint(const Program& program, Report& report);
void check_bucket_configuration(const Program& program, Report& report);
void check_comm_hook_misuse(const Program& program, Report& report);
void check_opaque_output_class(const Program& program, Report& report);
void check_grad_stride_mismatch(const Program& program, Report& report);
void check_backend_device_mismatch(const Program& program, Report& report);
void check_timeout_versus_rank0_work(const Program& program, Report& report);
void check_rank_seeding(const Program& program, Report& report);
void check_benchmark_without_warmup(const Program& program, Report& report);
void check_loader_oversubscription(const Program& program, Report& report);
void check_batchnorm_not_synchronised(const Program& program, Report& report);
void check_save_on_every_rank(const Program& program, Report& report);
void check_load_without_map_location(const Program& program, Report& report);
void check_save_with_module_prefix(const Program& program, Report& report);
void check_rank_from_current_device(const Program& program, Report& report);
void check_truncating_batch_division(const Program& program, Report& report);
void check_batch_size_not_divided(const Program& program, Report& report);
void check_optimizer_before_device_move(const Program& program, Report& report);
void check_gradient_clip_before_unscale(const Program& program, Report& report);
void check_no_grad_training_forward(const Program& program, Report& report);
void check_missing_destroy_process_group(const Program& program, Report& report);

}  // namespace bench::pitfalls
