// More experiments: what the wrapper and the ranks keep between steps, and what surrounds a step
// (checkpoints, metrics, scaling, seeds, buckets, loaders, the start of a job). One function a
// rule, in the file that is named after it.
#pragma once

#include "training/pitfalls/lab.hpp"

namespace bench::training {

void accumulation_without_no_sync(Lab& lab);
void batch_size_not_divided(Lab& lab);
void batchnorm_not_synchronised(Lab& lab);
void batchnorm_under_dataparallel(Lab& lab);
void bucket_configuration(Lab& lab);
void grad_stride_mismatch(Lab& lab);
void gradient_clip_before_unscale(Lab& lab);
void hidden_straggler(Lab& lab);
void load_without_map_location(Lab& lab);
void loader_oversubscription(Lab& lab);
void loss_or_lr_scaling(Lab& lab);
void metric_not_reduced(Lab& lab);
void no_grad_training_forward(Lab& lab);
void no_sync_scope(Lab& lab);
void one_rank_state_change(Lab& lab);
void optimizer_before_device_move(Lab& lab);
void parameters_changed_after_wrap(Lab& lab);
void rank_seeding(Lab& lab);
void rendezvous_misconfigured(Lab& lab);
void sampler_rank_is_local_rank(Lab& lab);
void save_on_every_rank(Lab& lab);
void save_with_module_prefix(Lab& lab);
void static_graph_changes(Lab& lab);
void two_forwards_one_backward_with_buffers(Lab& lab);

}  // namespace bench::training
