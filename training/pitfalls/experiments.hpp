// The experiments, one function a rule. Each lives in the file that is named after its rule.
#pragma once

#include "training/pitfalls/lab.hpp"

namespace bench::training {

void batch_not_divisible_by_gpus(Lab& lab);
void data_not_sharded(Lab& lab);
void device_not_bound_to_rank(Lab& lab);
void gradient_path_bypasses_ddp(Lab& lab);
void list_input_split_wrongly(Lab& lab);
void loss_inside_dp_forward(Lab& lab);
void missing_set_epoch(Lab& lab);
void needless_unused_search(Lab& lab);
void output_without_batch_dim(Lab& lab);
void primary_gpu_imbalance(Lab& lab);
void rank0_forward_through_wrapper(Lab& lab);
void rank_conditional_collective(Lab& lab);
void rank_from_current_device(Lab& lab);
void rank_local_skip_or_break(Lab& lab);
void rnn_under_dataparallel(Lab& lab);
void sampler_pads_or_empties(Lab& lab);
void second_backward_unsynchronised(Lab& lab);
void truncating_batch_division(Lab& lab);
void unequal_leading_dims_in_inputs(Lab& lab);
void uneven_batches_per_rank(Lab& lab);
void unused_parameters(Lab& lab);

}  // namespace bench::training
