// The judges of dynamic evidence, and the prices of the laboratory's trials. Each lives in the file
// that is named after its rule.
#pragma once

#include "scenarios/pitfalls/laboratory/laboratory.hpp"
#include "scenarios/pitfalls/laboratory/run_evidence.hpp"

namespace bench::pitfalls {

void judge_batch_not_divisible_by_gpus(const RunEvidence& run, RunReport& report);
Price price_batch_not_divisible_by_gpus(const RunEvidence& broken, const RunEvidence& cured);

void judge_unused_parameters(const RunEvidence& run, RunReport& report);
Price price_unused_parameters(const RunEvidence& broken, const RunEvidence& cured);

void judge_uneven_batches_per_rank(const RunEvidence& run, RunReport& report);
Price price_uneven_batches_per_rank(const RunEvidence& broken, const RunEvidence& cured);

void judge_missing_set_epoch(const RunEvidence& run, RunReport& report);
Price price_missing_set_epoch(const RunEvidence& broken, const RunEvidence& cured);

void judge_needless_unused_search(const RunEvidence& run, RunReport& report);
Price price_needless_unused_search(const RunEvidence& broken, const RunEvidence& cured);

void judge_gradient_path_bypasses_ddp(const RunEvidence& run, RunReport& report);
Price price_gradient_path_bypasses_ddp(const RunEvidence& broken, const RunEvidence& cured);

void judge_second_backward_unsynchronised(const RunEvidence& run, RunReport& report);
Price price_second_backward_unsynchronised(const RunEvidence& broken, const RunEvidence& cured);

void judge_data_not_sharded(const RunEvidence& run, RunReport& report);
Price price_data_not_sharded(const RunEvidence& broken, const RunEvidence& cured);

void judge_sampler_pads_or_empties(const RunEvidence& run, RunReport& report);
Price price_sampler_pads_or_empties(const RunEvidence& broken, const RunEvidence& cured);

void judge_sampler_rank_is_local_rank(const RunEvidence& run, RunReport& report);
Price price_sampler_rank_is_local_rank(const RunEvidence& broken, const RunEvidence& cured);

void judge_rank_conditional_collective(const RunEvidence& run, RunReport& report);
Price price_rank_conditional_collective(const RunEvidence& broken, const RunEvidence& cured);

void judge_rank0_forward_through_wrapper(const RunEvidence& run, RunReport& report);
Price price_rank0_forward_through_wrapper(const RunEvidence& broken, const RunEvidence& cured);

void judge_rank_local_skip_or_break(const RunEvidence& run, RunReport& report);
Price price_rank_local_skip_or_break(const RunEvidence& broken, const RunEvidence& cured);

void judge_rank_from_current_device(const RunEvidence& run, RunReport& report);
Price price_rank_from_current_device(const RunEvidence& broken, const RunEvidence& cured);

void judge_device_not_bound_to_rank(const RunEvidence& run, RunReport& report);
Price price_device_not_bound_to_rank(const RunEvidence& broken, const RunEvidence& cured);

void judge_truncating_batch_division(const RunEvidence& run, RunReport& report);
Price price_truncating_batch_division(const RunEvidence& broken, const RunEvidence& cured);

void judge_rnn_under_dataparallel(const RunEvidence& run, RunReport& report);
Price price_rnn_under_dataparallel(const RunEvidence& broken, const RunEvidence& cured);

void judge_loss_inside_dp_forward(const RunEvidence& run, RunReport& report);
Price price_loss_inside_dp_forward(const RunEvidence& broken, const RunEvidence& cured);

void judge_primary_gpu_imbalance(const RunEvidence& run, RunReport& report);
Price price_primary_gpu_imbalance(const RunEvidence& broken, const RunEvidence& cured);

void judge_no_grad_training_forward(const RunEvidence& run, RunReport& report);
Price price_no_grad_training_forward(const RunEvidence& broken, const RunEvidence& cured);

void judge_two_forwards_one_backward_with_buffers(const RunEvidence& run, RunReport& report);
Price price_two_forwards_one_backward_with_buffers(const RunEvidence& broken,
                                                   const RunEvidence& cured);

void judge_parameters_changed_after_wrap(const RunEvidence& run, RunReport& report);
Price price_parameters_changed_after_wrap(const RunEvidence& broken, const RunEvidence& cured);

void judge_static_graph_changes(const RunEvidence& run, RunReport& report);
Price price_static_graph_changes(const RunEvidence& broken, const RunEvidence& cured);

void judge_save_with_module_prefix(const RunEvidence& run, RunReport& report);
Price price_save_with_module_prefix(const RunEvidence& broken, const RunEvidence& cured);

void judge_save_on_every_rank(const RunEvidence& run, RunReport& report);
Price price_save_on_every_rank(const RunEvidence& broken, const RunEvidence& cured);

void judge_load_without_map_location(const RunEvidence& run, RunReport& report);
Price price_load_without_map_location(const RunEvidence& broken, const RunEvidence& cured);

void judge_accumulation_without_no_sync(const RunEvidence& run, RunReport& report);
Price price_accumulation_without_no_sync(const RunEvidence& broken, const RunEvidence& cured);

void judge_no_sync_scope(const RunEvidence& run, RunReport& report);
Price price_no_sync_scope(const RunEvidence& broken, const RunEvidence& cured);

void judge_metric_not_reduced(const RunEvidence& run, RunReport& report);
Price price_metric_not_reduced(const RunEvidence& broken, const RunEvidence& cured);

void judge_loss_or_lr_scaling(const RunEvidence& run, RunReport& report);
Price price_loss_or_lr_scaling(const RunEvidence& broken, const RunEvidence& cured);

void judge_batch_size_not_divided(const RunEvidence& run, RunReport& report);
Price price_batch_size_not_divided(const RunEvidence& broken, const RunEvidence& cured);

void judge_batchnorm_under_dataparallel(const RunEvidence& run, RunReport& report);
Price price_batchnorm_under_dataparallel(const RunEvidence& broken, const RunEvidence& cured);

void judge_batchnorm_not_synchronised(const RunEvidence& run, RunReport& report);
Price price_batchnorm_not_synchronised(const RunEvidence& broken, const RunEvidence& cured);

void judge_optimizer_before_device_move(const RunEvidence& run, RunReport& report);
Price price_optimizer_before_device_move(const RunEvidence& broken, const RunEvidence& cured);

void judge_gradient_clip_before_unscale(const RunEvidence& run, RunReport& report);
Price price_gradient_clip_before_unscale(const RunEvidence& broken, const RunEvidence& cured);

void judge_one_rank_state_change(const RunEvidence& run, RunReport& report);
Price price_one_rank_state_change(const RunEvidence& broken, const RunEvidence& cured);

void judge_rank_seeding(const RunEvidence& run, RunReport& report);
Price price_rank_seeding(const RunEvidence& broken, const RunEvidence& cured);

void judge_bucket_configuration(const RunEvidence& run, RunReport& report);
Price price_bucket_configuration(const RunEvidence& broken, const RunEvidence& cured);

void judge_grad_stride_mismatch(const RunEvidence& run, RunReport& report);
Price price_grad_stride_mismatch(const RunEvidence& broken, const RunEvidence& cured);

void judge_loader_oversubscription(const RunEvidence& run, RunReport& report);
Price price_loader_oversubscription(const RunEvidence& broken, const RunEvidence& cured);

void judge_rendezvous_misconfigured(const RunEvidence& run, RunReport& report);
Price price_rendezvous_misconfigured(const RunEvidence& broken, const RunEvidence& cured);

void judge_hidden_straggler(const RunEvidence& run, RunReport& report);
Price price_hidden_straggler(const RunEvidence& broken, const RunEvidence& cured);

void judge_unequal_leading_dims_in_inputs(const RunEvidence& run, RunReport& report);
Price price_unequal_leading_dims_in_inputs(const RunEvidence& broken, const RunEvidence& cured);

void judge_list_input_split_wrongly(const RunEvidence& run, RunReport& report);
Price price_list_input_split_wrongly(const RunEvidence& broken, const RunEvidence& cured);

void judge_output_without_batch_dim(const RunEvidence& run, RunReport& report);
Price price_output_without_batch_dim(const RunEvidence& broken, const RunEvidence& cured);

}  // namespace bench::pitfalls
