#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/ranks/env_rendezvous.hpp"
#include "scenarios/pitfalls/reach/certainty.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Kind;
using diagnose::Launcher;
using diagnose::LaunchLine;
using diagnose::Module;
using diagnose::Source;

namespace {

// device_map="auto" spreads the layers over the GPUs, and the Trainer leaves such a model as it is.
// A dictionary may put all of it on one GPU.
bool is_spread_over_gpus(const Program& program) {
  for (const Module* module : program.modules())
    for (const auto& call : module->calls()) {
      const Ref map = CallRef{module, &call}.keyword("device_map");
      if (!map) continue;
      for (const Source& source : program.sources(map))
        if (source.ref.kind() != Kind::dictionary && source.ref.kind() != Kind::none_literal)
          return true;
    }
  return false;
}

// With DeepSpeed the Trainer runs one process per GPU and takes one, whatever started it.
bool runs_deepspeed(const Program& program, const LaunchLine& launch) {
  const auto& arguments = launch.script_arguments;
  if (std::any_of(arguments.begin(), arguments.end(), [](const diagnose::LaunchWord& argument) {
        return argument.text == "--deepspeed" || argument.text.starts_with("--deepspeed=");
      }))
    return true;
  for (const std::string_view name : {"TrainingArguments", "Seq2SeqTrainingArguments"})
    for (const CallRef& call : program.calls_named(name)) {
      const Ref config = program.written(call.keyword("deepspeed"));
      if (config && (config.kind() == Kind::string || config.kind() == Kind::dictionary))
        return true;
    }
  return false;
}

// The lines that are known; of those that the script shows for itself, what they say of the GPUs
// counts, and a bare `python train.py` may be meant for a machine with one.
std::vector<LaunchLine> launches_of(const Program& program) {
  std::vector<LaunchLine> out = program.launches();
  for (LaunchLine& launch : own_launches_in_text(program))
    if (launch.visible_devices().value_or(1) > 1) {
      launch.is_example = false;
      out.push_back(std::move(launch));
    }
  return out;
}

// GPUs that are listed or counted, or a line for several processes: a machine with more than one.
bool provides_for_several_gpus(const Program& program) {
  if (program.gpus().value_or(1) > 1 || facts::visible_gpus(program).value_or(1) > 1) return true;
  const auto launches = launches_of(program);
  if (std::any_of(launches.begin(), launches.end(), [](const LaunchLine& launch) {
        return launch.visible_devices().value_or(1) > 1 || facts::starts_several(launch);
      }))
    return true;
  for (const char* word : {"device_count", "world_size", "WORLD_SIZE", "CUDA_VISIBLE_DEVICES"})
    if (program.mentions(word)) return true;
  return false;
}

}  // namespace

void check_hf_trainer_implicit_dataparallel(const Program& program, Report& report) {
  if (!program.uses(Api::hf_trainer) || is_spread_over_gpus(program)) return;
  // What the line starts may only import from the file that trains.
  const auto trainers = program.calls(Api::hf_trainer);
  const auto made = std::find_if(trainers.begin(), trainers.end(), [&](const CallRef& call) {
    return call.module == &program.root() || facts::is_reachable(program, call.ref());
  });
  if (made == trainers.end()) return;
  for (const LaunchLine& launch : launches_of(program)) {
    // What a README shows first is often the command for a machine with one GPU.
    if (launch.launcher != Launcher::python || launch.is_example) continue;
    if (runs_deepspeed(program, launch)) continue;
    const auto visible = launch.visible_devices();
    if ((visible && *visible <= 1) || (program.gpus() && *program.gpus() <= 1)) continue;
    const CallRef call = *made;
    Finding& finding =
        report.at(call.ref(), visible || program.gpus() ? Confidence::certain : Confidence::likely,
                  "started with plain python on several GPUs, the Trainer wraps the model in "
                  "DataParallel and multiplies "
                  "the batch size by their number");
    if (!provides_for_several_gpus(program))
      tell_as_note(finding, "nothing here provides for several GPUs");
    finding.help =
        "Launch with torchrun --nproc-per-node=N or accelerate launch, or show one GPU with "
        "CUDA_VISIBLE_DEVICES=0.";
    return;
  }
}

}  // namespace bench::pitfalls
