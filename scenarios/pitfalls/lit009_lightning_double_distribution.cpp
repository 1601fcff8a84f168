#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/frameworks/lightning_dp.hpp"
#include "scenarios/pitfalls/frameworks/trainer.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/named_in_code.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/ranks/own_ranks.hpp"

#include <algorithm>

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

// getattr(args, "rank", 0) of options that have no such one: the same number in every process.
bool is_missing_option(const Program& program, Ref value) {
  const CallRef call = program.as_call(value);
  if (!call || call.call->name != "getattr" || call.positional(2).kind() != diagnose::Kind::integer)
    return false;
  const std::string name = program.string(call.positional(1)).value_or("");
  const auto& of_parser = program.sources(call.positional(0));
  if (name.empty() || of_parser.empty() ||
      !std::all_of(of_parser.begin(), of_parser.end(), [&](const diagnose::Source& source) {
        const CallRef parse = program.as_call(source.ref);
        return parse && parse.call->name == "parse_args";
      }))
    return false;
  const auto options = program.calls_named("add_argument");
  return std::none_of(options.begin(), options.end(),
                      [&](const CallRef& option) {
                        std::string text = program.string(option.positional(0)).value_or("");
                        std::replace(text.begin(), text.end(), '-', '_');
                        return text == "__" + name;
                      }) &&
         std::all_of(
             program.modules().begin(), program.modules().end(),
             [&](const diagnose::Module* module) { return module->defs_of(name, true).empty(); });
}

bool is_one_for_all(const Program& program, Ref rank) {
  if (program.written(rank).kind() == diagnose::Kind::integer) return true;
  const auto& sources = program.sources(rank);
  return sources.size() == 1 && is_missing_option(program, sources.front().ref);
}

// A Trainer that may start several processes.
bool may_start_several(const Program& program) {
  const auto uses = trainer::uses(program);
  return std::any_of(uses.begin(), uses.end(), [](const trainer::Use& use) {
    const auto* devices = use.find("devices");
    return use.call && !trainer::is_one(devices) &&
           (devices != nullptr || use.find("strategy") != nullptr);
  });
}

// DistributedSampler(data, num_replicas=n, rank=rank), and what another file derives from it.
void check_sampler_of_one_rank(const Program& program, Report& report) {
  if (!may_start_several(program)) return;
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Call& each : module->calls()) {
      const CallRef sampler{module, &each};
      if (each.name.find("DistributedSampler") == std::string_view::npos ||
          program.enclosing_class(sampler.ref()) || program.callee(sampler) ||
          program.class_of_call(sampler) || !sampler.keyword("rank") ||
          !sampler.keyword("num_replicas") || !is_one_for_all(program, sampler.keyword("rank")) ||
          !facts::is_reachable(program, sampler.ref()))
        continue;
      report
          .at(sampler.ref(), Confidence::likely,
              "the sampler is made by hand with one rank for all: every process of the Trainer "
              "reads the same shard")
          .help = "Leave the sampler to the Trainer, or ask dist.get_rank() when it is set up.";
      return;
    }
}

// A Trainer for GPUs that says how many, and not that it is one.
bool may_take_several_gpus(const Program& program) {
  const auto uses = trainer::uses(program);
  return std::any_of(uses.begin(), uses.end(), [](const trainer::Use& use) {
    const auto* accelerator = use.find("accelerator");
    if (!use.call || trainer::is_one(use.find("devices")) || trainer::is_one(use.find("gpus")) ||
        (accelerator != nullptr && accelerator->value.is_string() &&
         accelerator->value.string == "cpu"))
      return false;
    for (const char* says : {"devices", "gpus", "strategy", "num_nodes"})
      if (use.find(says) != nullptr) return true;
    return false;
  });
}

// forward(), training_step() and its kin, which every process of the Trainer runs.
bool is_step_of_module(const Program& program, Ref node) {
  const FunctionRef function = program.enclosing_function(node);
  const ClassRef cls = program.enclosing_class(node);
  return function && cls && program.derives_from(cls, Api::lightning_module) &&
         (function.function->name == "forward" || function.function->name.ends_with("_step") ||
          function.function->name.starts_with("on_"));
}

// x.to("cuda:0"), torch.rand(n, device="cuda:0"): the first GPU, in the process of every GPU.
void check_devices_of_one_rank(const Program& program, Report& report) {
  if (!may_take_several_gpus(program)) return;
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Call& each : module->calls()) {
      const CallRef call{module, &each};
      Ref device = call.keyword("device");
      if (!device && (each.name == "to" || each.name == "cuda")) device = call.positional(0);
      const auto index = device ? facts::cuda_index(program, device) : std::nullopt;
      if (!index || *index < 0 || !is_step_of_module(program, call.ref())) continue;
      report
          .at(call.ref(), Confidence::likely,
              "a Lightning step puts a tensor on GPU " + std::to_string(*index) +
                  " in every process: on the others the module is on another GPU")
          .help = "Use self.device, or type_as(batch).";
    }
}

// DataLoader(data, batch_size=None), also by options: the data set gives batches itself, as those
// do that deal out their samples. A stream (wds.WebDataset, split_by_node) takes no sampler.
bool reads_ready_batches(const Program& program) {
  for (const char* option : {"batch_size=None", "\"batch_size\": None", "'batch_size': None"})
    if (facts::contains(program.root().tree().source(), option)) return true;
  for (const char* stream :
       {"IterableDataset", "WebDataset", "split_by_node", "split_dataset_by_node"})
    if (program.mentions(stream)) return true;
  return false;
}

// opt after opt = self.optimizers(), or self.optimizer of parameters, made with the module: its
// own. Any other may be for the noise of an attack on its inputs, or for a copy.
bool is_of_module(const Program& program, Ref optimizer) {
  const CallRef kept = program.origin(optimizer, Api::optimizer);
  if (kept && optimizer.text().starts_with("self.")) {
    const FunctionRef maker = program.enclosing_function(kept.ref());
    return maker &&
           (maker.function->name == "__init__" || maker.function->name == "configure_optimizers") &&
           facts::contains(kept.argument(0, "params").text(), "parameters()");
  }
  if (optimizer.kind() == diagnose::Kind::subscript)
    optimizer = optimizer.child(diagnose::Field::value);
  const auto& sources = program.sources(optimizer);
  return !sources.empty() &&
         std::all_of(sources.begin(), sources.end(), [&](const diagnose::Source& source) {
           const CallRef made = program.as_call(source.ref);
           return made && made.call->name == "optimizers" && made.receiver().text() == "self";
         });
}

// The module reduces something by hand, which may be its gradients.
bool reduces_by_hand(const ClassRef& cls) {
  const auto calls = facts::calls_in({cls.module, cls.cls->node});
  return std::any_of(calls.begin(), calls.end(), [](const CallRef& call) {
    return call.call->name != "log" &&
           says_any(call.call->name, {"reduce", "gather", "average_grad", "sync_grad"});
  });
}

// optimizer.step() below the pass back, in its function.
bool steps_below(const Program& program, const CallRef& backward) {
  const FunctionRef here = program.enclosing_function(backward.ref());
  const auto steps = program.calls_named("step");
  return std::any_of(steps.begin(), steps.end(), [&](const CallRef& step) {
    return step.receiver() && step.module == backward.module &&
           step.call->node >= backward.call->node &&
           program.enclosing_function(step.ref()) == here && is_of_module(program, step.receiver());
  });
}

// loss.backward() in training_step(), where self.manual_backward(loss) is meant: Lightning prepares
// its DDP for the pass back in the latter alone, or behind the step. (Source: lightning 2.x,
// DDPStrategy.pre_backward and _DDPForwardRedirection.)
void check_backwards_by_hand(const Program& program, Report& report) {
  // Other strategies reduce by hooks of their own, whoever passes back.
  const auto is_said = [&](const char* word) { return program.mentions(word); };
  if (!runs_steps_in_several(program) || is_said("ddp_sharded") || is_said("fsdp") ||
      is_said("deepspeed") || is_said("horovod"))
    return;
  for (const CallRef& backward : program.calls_named("backward")) {
    const ClassRef cls = program.enclosing_class(backward.ref());
    const FunctionRef method = program.enclosing_function(backward.ref());
    if (!backward.receiver() || backward.positional(0) || !cls || !method ||
        !program.derives_from(cls, Api::lightning_module) || reduces_by_hand(cls) ||
        !steps_below(program, backward))
      continue;
    const auto steps = steps_of_module(program, cls);
    if (std::find(steps.begin(), steps.end(), method) == steps.end() ||
        method.function->name == "backward" ||  // the hook, which Lightning calls itself
        facts::contains(Ref{method.module, method.function->body}.text(), "manual_backward("))
      continue;
    report
        .at(backward.ref(), Confidence::likely,
            "the step passes back by itself, and Lightning prepares its DDP for "
            "self.manual_backward(loss): the gradients are not reduced, and every process trains a "
            "model of its own")
        .help = "Set self.automatic_optimization = False, and call self.manual_backward(loss).";
  }
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
        program.written(sampler.argument(2, "rank")).kind() == diagnose::Kind::integer)
      report
          .at(sampler.ref(), Confidence::certain,
              "the sampler is made by hand with one rank for all: every process reads the same "
              "shard")
          .help = "Leave the sampler to the Trainer, which makes one for each rank.";
  check_sampler_of_one_rank(program, report);
  check_devices_of_one_rank(program, report);
  check_backwards_by_hand(program, report);
  bool has_sampler = program.uses(Api::distributed_sampler);
  for (const trainer::Use& use : trainer::uses(program)) {
    for (const std::string_view name : {"use_distributed_sampler", "replace_sampler_ddp"}) {
      const auto* argument = use.find(name);
      const auto* count = use.find("devices");
      const bool one_device =
          count != nullptr && count->value.is_integer() && count->value.integer == 1;
      if (argument && argument->value.is_false() && !has_sampler &&
          !facts::is_named_in_code(program, "Sampler") && use.call && !one_device &&
          !reads_ready_batches(program))
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
