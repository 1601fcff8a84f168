#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/edits.hpp"
#include "scenarios/pitfalls/trainer.hpp"

#include <array>

namespace bench::pitfalls {

namespace {

struct RemovedArgument {
  std::string_view name;
  std::string_view since;
  std::string_view instead;
};

constexpr auto kRemovedArguments = std::to_array<RemovedArgument>({
    {"auto_select_gpus", "2.0",
     "devices=find_usable_cuda_devices(n) from lightning.pytorch.accelerators, or "
     "devices=\"auto\""},
    {"log_gpu_memory", "1.7", "callbacks=[DeviceStatsMonitor()]"},
    {"replace_sampler_ddp", "2.0", "use_distributed_sampler"},
    {"amp_backend", "2.0", "precision=\"16-mixed\""},
    {"amp_level", "2.0", "precision=\"16-mixed\""},
    {"prepare_data_per_node", "1.7", "the attribute prepare_data_per_node of the data module"},
    {"weights_summary", "1.7", "enable_model_summary, or callbacks=[ModelSummary(max_depth=1)]"},
    {"resume_from_checkpoint", "2.0", "trainer.fit(model, ckpt_path=...)"},
    {"move_metrics_to_cpu", "2.0", "nothing: torchmetrics move themselves"},
    {"checkpoint_callback", "1.7", "enable_checkpointing"},
    {"progress_bar_refresh_rate", "1.7", "callbacks=[TQDMProgressBar(refresh_rate=...)]"},
    {"process_position", "1.7", "callbacks=[TQDMProgressBar(process_position=...)]"},
    {"flush_logs_every_n_steps", "1.7", "an argument of the logger"},
    {"stochastic_weight_avg", "1.7", "callbacks=[StochasticWeightAveraging(...)]"},
    {"terminate_on_nan", "1.7", "detect_anomaly=True"},
    {"track_grad_norm", "2.0", "the hook on_before_optimizer_step"},
    {"auto_lr_find", "2.0", "Tuner(trainer).lr_find(model)"},
    {"auto_scale_batch_size", "2.0", "Tuner(trainer).scale_batch_size(model)"},
    {"multiple_trainloader_mode", "2.0", "CombinedLoader(...)"},
    {"truncated_bptt_steps", "1.7", "a loop of your own"},
    {"reload_dataloaders_every_epoch", "1.6", "reload_dataloaders_every_n_epochs"},
    {"plugins_ddp_sharded", "1.7", "strategy=\"fsdp\""},
});

}  // namespace

void check_removed_trainer_argument(const Program& program, Report& report) {
  for (const trainer::Use& use : trainer::uses(program))
    for (const trainer::Argument& argument : use.arguments)
      for (const RemovedArgument& removed : kRemovedArguments) {
        if (removed.name != argument.name) continue;
        Finding& finding = trainer::flag(
            report, argument, Confidence::certain,
            "Trainer(" + argument.name + "=...) was removed in Lightning " +
                std::string(removed.since) + ": TypeError, unexpected keyword argument");
        finding.help = "Use " + std::string(removed.instead) + ".";
        if (argument.name == "replace_sampler_ddp" && argument.node)
          trainer::fix(argument, "use_distributed_sampler=" + std::string(argument.node.text()),
                       "Rename it", finding);
        else if (use.call && argument.node &&
                 (argument.name == "log_gpu_memory" || argument.name == "move_metrics_to_cpu" ||
                  argument.name == "amp_backend"))
          remove_argument(use.call, argument.name, "Remove it", finding);
      }
}

}  // namespace bench::pitfalls
