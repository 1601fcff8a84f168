#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/trainer.hpp"

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::ClassRef;
using diagnose::FunctionRef;
using diagnose::Launcher;
using diagnose::LaunchLine;
using diagnose::Wrap;

namespace {

// Every Trainer asks for GPUs: accelerator="gpu", gpus=1.
bool only_on_gpus(const Program& program) {
  const auto uses = trainer::uses(program);
  return std::all_of(uses.begin(), uses.end(), [](const trainer::Use& use) {
    const auto* gpus = use.find("gpus");
    const auto* accelerator = use.find("accelerator");
    if (accelerator != nullptr && accelerator->value.is_string())
      return accelerator->value.string == "gpu" || accelerator->value.string == "cuda";
    return gpus != nullptr && gpus->value.is_integer() && gpus->value.integer != 0;
  });
}

}  // namespace

void check_lightning_double_distribution(const Program& program, Report& report) {
  const auto inside_lightning = [&](Ref node) {
    const ClassRef cls = program.enclosing_class(node);
    return cls && (program.derives_from(cls, Api::lightning_module) ||
                   program.derives_from(cls, Api::lightning_data_module));
  };
  for (const Wrap& wrap : program.wraps())
    if (inside_lightning(wrap.call.ref()))
      report
          .at(wrap.call.ref(), Confidence::certain,
              "the model is wrapped by hand inside a Lightning module, and Lightning's strategy "
              "wraps it again")
          .help = "Leave the wrapping to the Trainer: strategy=\"ddp\".";
  for (const CallRef& move : program.calls_named("cuda")) {
    const FunctionRef function = program.enclosing_function(move.ref());
    const bool step = function && (function.function->name == "training_step" ||
                                   function.function->name == "validation_step" ||
                                   function.function->name == "forward");
    if (!step || !move.receiver() || !inside_lightning(move.ref())) continue;
    Finding& finding =
        report.at(move.ref(), Confidence::likely,
                  ".cuda() inside a Lightning step: it asks for a GPU whatever the Trainer uses");
    // A forward pass also serves programs without a Trainer; and the Trainer sets the current
    // device, so the tensor goes to the right GPU where there is one for certain.
    finding.severity = function.function->name == "forward" || only_on_gpus(program)
                           ? Severity::info
                           : Severity::warning;
    finding.help = "Use self.device, or type_as(batch).";
  }
  for (const CallRef& sampler : program.calls(Api::distributed_sampler))
    if (inside_lightning(sampler.ref()) &&
        sampler.argument(2, "rank").kind() == diagnose::Kind::integer)
      report
          .at(sampler.ref(), Confidence::certain,
              "the sampler is made by hand with one rank for all: every process reads the same "
              "shard")
          .help = "Leave the sampler to the Trainer, which makes one for each rank.";
  bool has_sampler = program.uses(Api::distributed_sampler);
  for (const trainer::Use& use : trainer::uses(program)) {
    for (const std::string_view name : {"use_distributed_sampler", "replace_sampler_ddp"}) {
      const auto* argument = use.find(name);
      const auto* count = use.find("devices");
      const bool one_device =
          count != nullptr && count->value.is_integer() && count->value.integer == 1;
      if (argument && argument->value.is_false() && !has_sampler && !program.mentions("Sampler") &&
          use.call && !one_device)
        trainer::flag(
            report, *argument, Confidence::likely,
            "no sampler is inserted and the script has none: every rank sees all the data")
            .help = "Leave it out, or pass a DistributedSampler.";
    }
    const auto* devices = use.find("devices");
    for (const LaunchLine& launch : program.launches()) {
      if (launch.launcher != Launcher::torchrun || !devices || !devices->value.is_integer() ||
          devices->value.integer < 1)
        continue;
      const auto ranks = launch.processes_per_node();
      if (ranks && *ranks != devices->value.integer)
        trainer::flag(report, *devices, Confidence::certain,
                      "devices=" + std::to_string(devices->value.integer) +
                          " but the launch line starts " + std::to_string(*ranks) +
                          " processes: ValueError, the product does not match the world size")
            .help = "Make them equal.";
    }
  }
}

}  // namespace bench::pitfalls
