#include "diagnose/model/api.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>

namespace bench::diagnose {
namespace {

struct Entry {
  std::string_view name;
  Api api;
};

constexpr Entry kExact[] = {
    {"torch.nn.parallel.DistributedDataParallel", Api::ddp},
    {"torch.nn.parallel.distributed.DistributedDataParallel", Api::ddp},
    {"torch.nn.parallel.DistributedDataParallelCPU", Api::ddp},
    {"torch.nn.DataParallel", Api::data_parallel},
    {"torch.nn.parallel.DataParallel", Api::data_parallel},
    {"torch.nn.parallel.data_parallel.DataParallel", Api::data_parallel},
    {"torch.nn.parallel.data_parallel", Api::data_parallel_function},
    {"torch_geometric.nn.DataParallel", Api::data_parallel},
    {"torch_geometric.nn.data_parallel.DataParallel", Api::data_parallel},
    {"apex.parallel.DistributedDataParallel", Api::apex_ddp},
    {"torch.distributed.fsdp.FullyShardedDataParallel", Api::fsdp},
    {"torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel", Api::fsdp},
    {"torch.distributed.fsdp.fully_shard", Api::fully_shard},
    {"torch.distributed._composable.fsdp.fully_shard", Api::fully_shard},
    {"torch.distributed._composable.fsdp.fully_shard.fully_shard", Api::fully_shard},
    {"torch.nn.SyncBatchNorm", Api::sync_batch_norm},
    {"torch.nn.SyncBatchNorm.convert_sync_batchnorm", Api::convert_sync_batch_norm},
    {"apex.parallel.convert_syncbn_model", Api::convert_sync_batch_norm},
    {"torch.distributed.init_process_group", Api::init_process_group},
    {"torch.distributed.destroy_process_group", Api::destroy_process_group},
    {"torch.distributed.is_initialized", Api::is_initialized},
    {"torch.distributed.is_available", Api::is_distributed_available},
    {"torch.distributed.get_rank", Api::get_rank},
    {"torch.distributed.get_world_size", Api::get_world_size},
    {"torch.distributed.new_group", Api::new_group},
    {"torch.distributed.barrier", Api::barrier},
    {"torch.distributed.monitored_barrier", Api::barrier},
    {"torch.distributed.all_reduce", Api::all_reduce},
    {"torch.distributed.all_gather", Api::all_gather},
    {"torch.distributed.all_gather_into_tensor", Api::all_gather},
    {"torch.distributed._all_gather_base", Api::all_gather},
    {"torch.distributed.all_gather_object", Api::all_gather},
    {"torch.distributed.gather", Api::gather},
    {"torch.distributed.gather_object", Api::gather},
    {"torch.distributed.broadcast", Api::broadcast},
    {"torch.distributed.broadcast_object_list", Api::broadcast},
    {"torch.distributed.reduce", Api::reduce},
    {"torch.distributed.reduce_scatter", Api::reduce_scatter},
    {"torch.distributed.reduce_scatter_tensor", Api::reduce_scatter},
    {"torch.distributed.scatter", Api::scatter},
    {"torch.distributed.scatter_object_list", Api::scatter},
    {"torch.distributed.all_to_all", Api::all_to_all},
    {"torch.distributed.all_to_all_single", Api::all_to_all},
    {"torch.distributed.send", Api::send},
    {"torch.distributed.isend", Api::send},
    {"torch.distributed.recv", Api::receive},
    {"torch.distributed.irecv", Api::receive},
    {"torch.distributed.nn.functional.all_gather", Api::differentiable_gather},
    {"torch.distributed.nn.all_gather", Api::differentiable_gather},
    {"torch.multiprocessing.spawn", Api::spawn},
    {"torch.multiprocessing.start_processes", Api::spawn},
    {"torch.multiprocessing.spawn.spawn", Api::spawn},
    {"torch.cuda.set_device", Api::set_device},
    {"torch.accelerator.set_device_index", Api::set_device},
    {"torch.cuda.device", Api::device_context},
    {"torch.cuda.current_device", Api::current_device},
    {"torch.cuda.device_count", Api::device_count},
    {"torch.cuda.is_available", Api::cuda_is_available},
    {"torch.cuda.synchronize", Api::cuda_synchronize},
    {"torch.device", Api::torch_device},
    {"torch.utils.data.DataLoader", Api::data_loader},
    {"torch.utils.data.dataloader.DataLoader", Api::data_loader},
    {"torch_geometric.loader.DataLoader", Api::data_loader},
    {"torch_geometric.data.DataLoader", Api::data_loader},
    {"monai.data.DataLoader", Api::data_loader},
    {"torch.utils.data.distributed.DistributedSampler", Api::distributed_sampler},
    {"torch.utils.data.DistributedSampler", Api::distributed_sampler},
    {"monai.data.DistributedSampler", Api::distributed_sampler},
    {"torch.utils.data.IterableDataset", Api::iterable_dataset},
    {"torch.utils.data.dataset.IterableDataset", Api::iterable_dataset},
    {"torch.utils.data.random_split", Api::random_split},
    {"torch.utils.data.dataset.random_split", Api::random_split},
    {"sklearn.model_selection.train_test_split", Api::train_test_split},
    {"torch.cuda.amp.GradScaler", Api::grad_scaler},
    {"torch.cuda.amp.grad_scaler.GradScaler", Api::grad_scaler},
    {"torch.amp.GradScaler", Api::grad_scaler},
    {"torch.cuda.amp.autocast", Api::autocast},
    {"torch.autocast", Api::autocast},
    {"torch.amp.autocast", Api::autocast},
    {"torch.no_grad", Api::no_grad},
    {"torch.inference_mode", Api::no_grad},
    {"torch.autograd.no_grad", Api::no_grad},
    {"torch.autograd.grad_mode.no_grad", Api::no_grad},
    {"torch.nn.utils.clip_grad_norm_", Api::clip_grad},
    {"torch.nn.utils.clip_grad_norm", Api::clip_grad},
    {"torch.nn.utils.clip_grad_value_", Api::clip_grad},
    {"torch.nn.utils.clip_grad.clip_grad_norm_", Api::clip_grad},
    {"torch.manual_seed", Api::manual_seed},
    {"torch.cuda.manual_seed", Api::manual_seed},
    {"torch.cuda.manual_seed_all", Api::manual_seed},
    {"torch.save", Api::torch_save},
    {"torch.load", Api::torch_load},
    {"torch.utils.checkpoint.checkpoint", Api::checkpoint},
    {"torch.utils.checkpoint.checkpoint_sequential", Api::checkpoint},
    {"torch.autograd.grad", Api::autograd_grad},
    {"torch.autograd.set_detect_anomaly", Api::detect_anomaly},
    {"torch.autograd.detect_anomaly", Api::detect_anomaly},
    {"torch.compile", Api::torch_compile},
    {"torch.nn.BatchNorm1d", Api::batch_norm},
    {"torch.nn.BatchNorm2d", Api::batch_norm},
    {"torch.nn.BatchNorm3d", Api::batch_norm},
    {"torch.nn.LazyBatchNorm2d", Api::batch_norm},
    {"torch.nn.LSTM", Api::rnn},
    {"torch.nn.GRU", Api::rnn},
    {"torch.nn.RNN", Api::rnn},
    {"torch.nn.utils.rnn.pack_padded_sequence", Api::pack_padded},
    {"torch.nn.utils.rnn.pad_packed_sequence", Api::pad_packed},
    {"torch.nn.Module", Api::module_class},
    {"torch.nn.modules.Module", Api::module_class},
    {"torch.zeros", Api::tensor_factory},
    {"torch.ones", Api::tensor_factory},
    {"torch.empty", Api::tensor_factory},
    {"torch.full", Api::tensor_factory},
    {"torch.rand", Api::tensor_factory},
    {"torch.randn", Api::tensor_factory},
    {"torch.randint", Api::tensor_factory},
    {"torch.arange", Api::tensor_factory},
    {"torch.tensor", Api::tensor_factory},
    {"torch.eye", Api::tensor_factory},
    {"torch.linspace", Api::tensor_factory},
    {"torch.as_tensor", Api::tensor_factory},
    {"time.time", Api::time_now},
    {"time.perf_counter", Api::time_now},
    {"time.monotonic", Api::time_now},
    {"timeit.default_timer", Api::time_now},
    {"datetime.datetime.now", Api::time_now},
    {"datetime.datetime.utcnow", Api::time_now},
    {"os.environ", Api::environ},
    {"os.getenv", Api::getenv},
    {"os.environ.get", Api::getenv},
    {"os.environ.pop", Api::getenv},
    {"os.environ.setdefault", Api::none},
    {"accelerate.Accelerator", Api::accelerator},
    {"accelerate.accelerator.Accelerator", Api::accelerator},
    {"transformers.Trainer", Api::hf_trainer},
    {"transformers.trainer.Trainer", Api::hf_trainer},
    {"transformers.Seq2SeqTrainer", Api::hf_trainer},
    {"trl.SFTTrainer", Api::hf_trainer},
    {"trl.DPOTrainer", Api::hf_trainer},
    {"trl.RewardTrainer", Api::hf_trainer},
    {"trl.GRPOTrainer", Api::hf_trainer},
    {"sentence_transformers.SentenceTransformerTrainer", Api::hf_trainer},
    {"transformers.TrainingArguments", Api::hf_training_arguments},
    {"transformers.Seq2SeqTrainingArguments", Api::hf_training_arguments},
    {"trl.SFTConfig", Api::hf_training_arguments},
    {"horovod.torch.init", Api::hvd_init},
    {"horovod.torch.rank", Api::hvd_rank},
    {"horovod.torch.local_rank", Api::hvd_local_rank},
    {"horovod.torch.size", Api::hvd_size},
    {"horovod.torch.DistributedOptimizer", Api::hvd_optimizer},
    {"horovod.torch.broadcast_parameters", Api::hvd_broadcast_parameters},
    {"horovod.torch.broadcast_optimizer_state", Api::hvd_broadcast_optimizer_state},
    {"deepspeed.initialize", Api::deepspeed},
    {"deepspeed.init_distributed", Api::init_process_group},
    {"deepspeed.comm.init_distributed", Api::init_process_group},
};

struct Family {
  std::string_view prefix;
  Api api;
};

// Tried in order after the exact names.
constexpr Family kFamilies[] = {
    {"torch.optim.lr_scheduler.", Api::scheduler},
    {"torch.optim.swa_utils.", Api::none},
    {"torch.optim.", Api::optimizer},
    {"apex.optimizers.", Api::optimizer},
    {"transformers.AdamW", Api::optimizer},
    {"transformers.get_", Api::scheduler},
    {"transformers.optimization.get_", Api::scheduler},
    {"diffusers.optimization.get_", Api::scheduler},
    {"transformers.optimization.AdamW", Api::optimizer},
    {"torchvision.models.", Api::torchvision_model},
    {"timm.create_model", Api::torchvision_model},
    {"horovod.torch.elastic.", Api::hvd_elastic},
    {"horovod.torch.", Api::hvd_other},
};

Api lightning_api(std::string_view name) {
  const auto dot = name.rfind('.');
  const std::string_view last = name.substr(dot + 1);
  if (last == "Trainer") return Api::lightning_trainer;
  if (last == "LightningModule") return Api::lightning_module;
  if (last == "LightningDataModule") return Api::lightning_data_module;
  if (last == "Fabric" || last == "LightningLite") return Api::lightning_fabric;
  return Api::none;
}

// torch.nn.CrossEntropyLoss, torch.nn.functional.cross_entropy and their kin.
bool is_loss_name(std::string_view name) {
  static constexpr std::array<std::string_view, 11> kFunctions = {
      "cross_entropy",
      "nll_loss",
      "mse_loss",
      "l1_loss",
      "smooth_l1_loss",
      "binary_cross_entropy",
      "kl_div",
      "huber_loss",
      "binary_cross_entropy_with_logits",
      "cosine_embedding_loss",
      "triplet_margin_loss"};
  const std::string_view last = name.substr(name.rfind('.') + 1);
  if (name.starts_with("torch.nn.functional."))
    return std::find(kFunctions.begin(), kFunctions.end(), last) != kFunctions.end();
  return name.starts_with("torch.nn.") && last.ends_with("Loss");
}

// Kin of torch's DataParallel that projects copy into files of their own: with synchronised batch
// norm, shares of unequal sizes, outputs left on their GPUs.
bool is_copied_data_parallel(std::string_view name) {
  static constexpr std::array<std::string_view, 4> kNames = {
      "DataParallelWithCallback", "BalancedDataParallel", "DataParallelModel",
      "UserScatteredDataParallel"};
  const std::size_t dot = name.rfind('.');
  return dot != std::string_view::npos &&
         std::find(kNames.begin(), kNames.end(), name.substr(dot + 1)) != kNames.end();
}

const std::unordered_map<std::string_view, Api>& exact_names() {
  static const auto table = [] {
    std::unordered_map<std::string_view, Api> made;
    for (const auto& entry : kExact) made.emplace(entry.name, entry.api);
    return made;
  }();
  return table;
}

}  // namespace

Api api_of(std::string_view name) {
  if (name.starts_with("torch.distributed.distributed_c10d."))
    return api_of("torch.distributed." + std::string(name.substr(35)));
  const auto known = exact_names().find(name);
  if (known != exact_names().end()) return known->second;
  // DeepSpeed's own torch.distributed, with the same names.
  for (const std::string_view package : {"deepspeed.comm.comm.", "deepspeed.comm."})
    if (name.starts_with(package))
      return api_of("torch.distributed." + std::string(name.substr(package.size())));
  for (const auto& family : kFamilies)
    if (name.starts_with(family.prefix)) return family.api;
  if (name.starts_with("pytorch_lightning.") || name.starts_with("lightning.") ||
      name.starts_with("lightning_fabric."))
    return lightning_api(name);
  if (is_loss_name(name)) return Api::loss;
  if (is_copied_data_parallel(name)) return Api::data_parallel;
  return Api::none;
}

bool is_collective(Api api) {
  switch (api) {
    case Api::barrier:
    case Api::all_reduce:
    case Api::all_gather:
    case Api::gather:
    case Api::broadcast:
    case Api::reduce:
    case Api::reduce_scatter:
    case Api::scatter:
    case Api::all_to_all:
    case Api::differentiable_gather:
      return true;
    default:
      return false;
  }
}

}  // namespace bench::diagnose
