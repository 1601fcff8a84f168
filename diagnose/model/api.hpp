// The library functions and classes that rules know, by their dotted name after imports and aliases
// are resolved. Several spellings of one thing (torch.nn.DataParallel,
// torch.nn.parallel.DataParallel) share one value.
#pragma once

#include <cstdint>
#include <string_view>

namespace bench::diagnose {

enum class Api : std::uint8_t {
  none,
  // wrappers
  ddp,
  data_parallel,
  data_parallel_function,
  apex_ddp,
  fsdp,
  fully_shard,
  sync_batch_norm,
  convert_sync_batch_norm,
  // process group and collectives
  init_process_group,
  destroy_process_group,
  is_initialized,
  is_distributed_available,
  get_rank,
  get_world_size,
  new_group,
  barrier,
  all_reduce,
  all_gather,
  gather,
  broadcast,
  reduce,
  reduce_scatter,
  scatter,
  all_to_all,
  send,
  receive,
  differentiable_gather,
  spawn,
  // devices
  set_device,
  device_context,
  current_device,
  device_count,
  cuda_is_available,
  cuda_synchronize,
  torch_device,
  // data
  data_loader,
  distributed_sampler,
  iterable_dataset,
  random_split,
  train_test_split,
  // training
  optimizer,
  scheduler,
  grad_scaler,
  autocast,
  no_grad,
  clip_grad,
  manual_seed,
  torch_save,
  torch_load,
  checkpoint,
  autograd_grad,
  detect_anomaly,
  torch_compile,
  batch_norm,
  rnn,
  pack_padded,
  pad_packed,
  loss,
  module_class,
  torchvision_model,
  tensor_factory,
  time_now,
  // environment
  environ,
  getenv,
  // Lightning
  lightning_trainer,
  lightning_module,
  lightning_data_module,
  lightning_fabric,
  // Accelerate, Hugging Face
  accelerator,
  hf_trainer,
  hf_training_arguments,
  // Horovod
  hvd_init,
  hvd_rank,
  hvd_local_rank,
  hvd_size,
  hvd_optimizer,
  hvd_broadcast_parameters,
  hvd_broadcast_optimizer_state,
  hvd_elastic,
  hvd_other,
  deepspeed,
};

Api api_of(std::string_view dotted_name);

// Calls that every rank of a group must make together.
bool is_collective(Api api);

}  // namespace bench::diagnose
