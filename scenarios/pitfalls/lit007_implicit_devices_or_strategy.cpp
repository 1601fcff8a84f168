#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/trainer.hpp"
#include "scenarios/pitfalls/trainer_signature.hpp"

namespace bench::pitfalls {

using diagnose::Value;

void check_implicit_devices_or_strategy(const Program& program, Report& report) {
  for (const trainer::Use& use : trainer::uses(program)) {
    const auto* strategy = use.find("strategy");
    if (program.is_notebook() && strategy && strategy->value.is_string() &&
        strategy->value.string == "ddp") {
      Finding& finding =
          trainer::flag(report, *strategy, Confidence::certain,
                        "strategy=\"ddp\" starts the script again for each rank, which a notebook "
                        "cannot: MisconfigurationException");
      finding.severity = Severity::error;
      finding.help = "Use strategy=\"ddp_notebook\", or run it as a script.";
      continue;
    }
    if (!use.call || use.has_more || use.find("fast_dev_run")) continue;
    const auto* gpus = use.find("gpus");
    const bool many =
        gpus &&
        ((gpus->value.is_integer() && (gpus->value.integer > 1 || gpus->value.integer == -1)) ||
         (gpus->value.type == Value::Type::list && gpus->value.items.size() > 1));
    if (many && !strategy && !use.find("accelerator") && !use.find("distributed_backend")) {
      Finding& finding =
          trainer::flag(report, *gpus, Confidence::likely,
                        "several GPUs without a strategy: Lightning 1.x uses ddp_spawn, 2.x ddp");
      finding.help = "State the strategy: strategy=\"ddp\".";
      trainer::weigh_by_requirements(program, trainer::kVersion2, finding);
      continue;
    }
    if (use.find("devices") || use.find("accelerator") || gpus || strategy ||
        use.find("num_nodes") || use.find("tpu_cores"))
      continue;
    Finding& finding = report.at(use.call.ref(), Confidence::check,
                                 "no devices and no strategy: Lightning 2 takes every visible GPU "
                                 "with DDP, Lightning 1 the CPU");
    finding.severity = Severity::info;
    finding.help = "State accelerator, devices and strategy.";
  }
}

}  // namespace bench::pitfalls
