#include "scenarios/pitfalls/frameworks/trainer_signature.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

namespace bench::pitfalls::trainer {
namespace {

constexpr int kZero = 0;  // before the first version that the others count from
constexpr int kFirst = 100;

constexpr SignatureEntry kSignature[] = {
    {"gpus", kFirst, 200, "accelerator=\"gpu\", devices=..."},
    {"num_processes", kFirst, 200, "accelerator=\"cpu\", devices=..."},
    {"tpu_cores", kFirst, 200, "accelerator=\"tpu\", devices=..."},
    {"ipus", 104, 200, "accelerator=\"ipu\" of the package lightning-graphcore"},
    {"distributed_backend", kFirst, 105, "strategy=..."},
    {"auto_select_gpus", kFirst, 200,
     "devices=find_usable_cuda_devices(n) from lightning.pytorch.accelerators, or "
     "devices=\"auto\""},
    {"automatic_optimization", kFirst, 103,
     "self.automatic_optimization = False in the LightningModule"},
    {"log_gpu_memory", kFirst, 107, "callbacks=[DeviceStatsMonitor()]"},
    {"replace_sampler_ddp", kFirst, 200, "use_distributed_sampler"},
    {"amp_backend", kFirst, 200, "precision=\"16-mixed\""},
    {"amp_level", kFirst, 200, "precision=\"16-mixed\""},
    {"prepare_data_per_node", kFirst, 107,
     "the attribute prepare_data_per_node of the data module"},
    {"weights_summary", kFirst, 107,
     "enable_model_summary, or callbacks=[ModelSummary(max_depth=1)]"},
    {"weights_save_path", kFirst, 108, "default_root_dir, or ModelCheckpoint(dirpath=...)"},
    {"resume_from_checkpoint", kFirst, 200, "trainer.fit(model, ckpt_path=...)"},
    {"move_metrics_to_cpu", 101, 200, "nothing: torchmetrics move themselves"},
    {"checkpoint_callback", kFirst, 107, "enable_checkpointing"},
    {"progress_bar_refresh_rate", kFirst, 107, "callbacks=[TQDMProgressBar(refresh_rate=...)]"},
    {"process_position", kFirst, 107, "callbacks=[TQDMProgressBar(process_position=...)]"},
    {"flush_logs_every_n_steps", kFirst, 107, "an argument of the logger"},
    {"stochastic_weight_avg", 102, 107, "callbacks=[StochasticWeightAveraging(...)]"},
    {"terminate_on_nan", kFirst, 107, "detect_anomaly=True"},
    {"track_grad_norm", kFirst, 200, "the hook on_before_optimizer_step"},
    {"auto_lr_find", kFirst, 200, "Tuner(trainer).lr_find(model)"},
    {"auto_scale_batch_size", kFirst, 200, "Tuner(trainer).scale_batch_size(model)"},
    {"multiple_trainloader_mode", 102, 200, "CombinedLoader(...)"},
    {"truncated_bptt_steps", kFirst, 105, "a loop of your own"},
    {"reload_dataloaders_every_epoch", kFirst, 106, "reload_dataloaders_every_n_epochs"},
    // Arguments of 0.7 that went before or with 1.0.
    {"early_stop_callback", kZero, kFirst, "callbacks=[EarlyStopping(...)]"},
    {"log_save_interval", kZero, kFirst, "an argument of the logger"},
    {"row_log_interval", kZero, kFirst, "log_every_n_steps"},
    {"add_row_log_interval", kZero, kFirst, "log_every_n_steps"},
    {"overfit_pct", kZero, kFirst, "overfit_batches"},
    {"train_percent_check", kZero, kFirst, "limit_train_batches"},
    {"val_percent_check", kZero, kFirst, "limit_val_batches"},
    {"test_percent_check", kZero, kFirst, "limit_test_batches"},
    {"show_progress_bar", kZero, kFirst, "enable_progress_bar"},
    {"use_amp", kZero, kFirst, "precision=\"16-mixed\""},
    {"print_nan_grads", kZero, kFirst, "detect_anomaly=True"},
    {"num_tpu_cores", kZero, kFirst, "accelerator=\"tpu\", devices=..."},
    {"nb_gpu_nodes", kZero, kFirst, "num_nodes"},
    {"nb_sanity_val_steps", kZero, kFirst, "num_sanity_val_steps"},
    {"max_nb_epochs", kZero, kFirst, "max_epochs"},
    {"min_nb_epochs", kZero, kFirst, "min_epochs"},
    {"default_save_path", kZero, kFirst, "default_root_dir"},
    {"gradient_clip", kZero, kFirst, "gradient_clip_val"},
    {"strategy", 105, kNever, {}},
    {"devices", 104, kNever, {}},
    {"use_distributed_sampler", 200, kNever, {}},
    {"enable_checkpointing", 105, kNever, {}},
    {"enable_progress_bar", 105, kNever, {}},
    {"enable_model_summary", 105, kNever, {}},
    {"detect_anomaly", 105, kNever, {}},
    {"inference_mode", 108, kNever, {}},
    {"barebones", 200, kNever, {}},
};

struct Replaced {
  std::string_view strategy;
  std::string_view successor;
};

constexpr Replaced kReplaced[] = {
    {"dp", "ddp"},
    {"ddp2", "ddp"},
    {"horovod", "ddp"},
    {"bagua", "ddp"},
    {"hivemind", "ddp"},
    {"collaborative", "ddp"},
    {"ddp_sharded", "fsdp"},
    {"ddp_sharded_spawn", "fsdp"},
    {"ddp_fully_sharded", "fsdp"},
    {"fsdp_native", "fsdp"},
};

// The same as classes of pytorch_lightning.strategies.
constexpr Replaced kReplacedClasses[] = {
    {"DataParallelStrategy", "DDPStrategy()"},
    {"DDP2Strategy", "DDPStrategy()"},
    {"DDPSpawnStrategy", "DDPStrategy(start_method=\"spawn\")"},
    {"HorovodStrategy", "DDPStrategy()"},
    {"BaguaStrategy", "DDPStrategy()"},
    {"HivemindStrategy", "DDPStrategy()"},
    {"CollaborativeStrategy", "DDPStrategy()"},
    {"DDPShardedStrategy", "FSDPStrategy()"},
    {"DDPSpawnShardedStrategy", "FSDPStrategy()"},
    {"DDPFullyShardedStrategy", "FSDPStrategy()"},
    {"DDPFullyShardedNativeStrategy", "FSDPStrategy()"},
};

}  // namespace

const SignatureEntry* find_signature(std::string_view argument) {
  const auto at = std::find_if(std::begin(kSignature), std::end(kSignature),
                               [&](const SignatureEntry& entry) { return entry.name == argument; });
  return at == std::end(kSignature) ? nullptr : at;
}

bool accepts(std::string_view argument, int version) {
  const SignatureEntry* entry = find_signature(argument);
  return entry == nullptr || (entry->since <= version && version < entry->removed);
}

const char* version_text(int version) {
  static constexpr std::array kOne{"1.0", "1.1", "1.2", "1.3", "1.4",
                                   "1.5", "1.6", "1.7", "1.8", "1.9"};
  return version >= 200 ? "2.0" : kOne[static_cast<std::size_t>(version - kFirst)];
}

namespace {

std::string_view successor_in(std::span<const Replaced> table, std::string_view strategy) {
  for (const Replaced& each : table)
    if (each.strategy == strategy) return each.successor;
  return {};
}

}  // namespace

std::string_view strategy_successor(std::string_view strategy) {
  return successor_in(kReplaced, strategy);
}

std::string_view strategy_class_successor(std::string_view name) {
  return successor_in(kReplacedClasses, name);
}

}  // namespace bench::pitfalls::trainer
