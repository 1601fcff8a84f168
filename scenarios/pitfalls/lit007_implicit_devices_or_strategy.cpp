#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/frameworks/trainer.hpp"
#include "scenarios/pitfalls/frameworks/trainer_signature.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/ranks/own_ranks.hpp"
#include "scenarios/pitfalls/reach/certainty.hpp"
#include "scenarios/pitfalls/reach/order.hpp"

#include <algorithm>
#include <vector>

namespace bench::pitfalls {

using diagnose::Value;

namespace {

// 4, -1 or [0, 1], as it is written; torch.cuda.device_count() asks for all of them, as -1 does.
bool is_many(const Program& program, const trainer::Argument* count) {
  return count != nullptr &&
         ((count->node && program.as_call(count->node) &&
           program.as_call(count->node).call->api == diagnose::Api::device_count) ||
          (count->value.is_integer() && (count->value.integer > 1 || count->value.integer == -1)) ||
          (count->value.is_string() && facts::contains(count->value.string, ",") &&
           !count->value.string.ends_with(",")) ||
          (count->value.type == Value::Type::list && count->value.items.size() > 1));
}

// accelerator="gpu", which says what the devices are and nothing of how they work together; a list
// of devices says as much.
bool is_on_gpus(const trainer::Use& use) {
  const trainer::Argument* accelerator = use.find("accelerator");
  const trainer::Argument* devices = use.find("devices");
  if (accelerator == nullptr) return devices != nullptr && devices->value.type == Value::Type::list;
  return accelerator->value.is_string() &&
         (accelerator->value.string == "gpu" || accelerator->value.string == "cuda" ||
          accelerator->value.string == "auto");
}

// prepare_data() of a module, which the Trainer calls once on a node, or what it calls.
bool is_in_prepare_data(const Program& program, Ref node, int depth = 0) {
  constexpr int kCalls = 4;
  const auto method = program.enclosing_function(node);
  if (!method || depth > kCalls) return false;
  if (method.function->name == "prepare_data") return true;
  const auto& sites = program.call_sites(method);
  return std::any_of(sites.begin(), sites.end(), [&](const CallRef& site) {
    return is_in_prepare_data(program, site.ref(), depth + 1);
  });
}

// Under a rank's test, a lock, or a question for the ranks that the Trainer starts: it gives them
// LOCAL_RANK, and the process that starts them has none.
bool is_kept_to_one(const Program& program, Ref node) {
  return program.guarded_by_rank(node) != diagnose::RankTest::none ||
         facts::rank_goes_first(program, node) || facts::under_lock(program, node) ||
         program.under(node, [](Ref condition, bool) {
           return says_any(condition.text(), {"rank", "is_main", "is_master"});
         });
}

// datasets.CIFAR10(root, download=True), of a library.
std::vector<CallRef> downloads_of(const Program& program) {
  std::vector<CallRef> out;
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Call& made : module->calls()) {
      const CallRef load{module, &made};
      const Ref download = load.keyword("download");
      if (!download || program.written(download).kind() != diagnose::Kind::true_literal) continue;
      const std::string_view name = made.path;
      if (name.starts_with("torchvision.datasets.") || name.starts_with("torchaudio.datasets."))
        out.push_back(load);
    }
  return out;
}

// "ddp" and its kin, "fsdp", DDPStrategy(): they start the script again for the other ranks. What
// forks, and an object that is told how to start, may be meant for notebooks.
std::string starting_script_again(const Program& program, const trainer::Argument& strategy) {
  if (strategy.value.is_string()) {
    const std::string& name = strategy.value.string;
    const bool is_one = name == "ddp" || name == "fsdp" || name == "fsdp_cpu_offload" ||
                        name.starts_with("ddp_find_unused_parameters_") ||
                        name.starts_with("deepspeed");
    return is_one && !strategy.value.is_default ? "strategy=\"" + name + "\"" : std::string();
  }
  const CallRef made = strategy.node ? program.made_by(strategy.node) : CallRef{};
  if (!made || made.has_splat() || made.keyword("start_method") || program.class_of_call(made))
    return {};
  for (const char* name : {"DDPStrategy", "FSDPStrategy", "DeepSpeedStrategy"})
    if (made.call->name == name) return "strategy=" + std::string(name) + "()";
  return {};
}

// CIFAR10 and most others look whether their files are there and whole, and then do nothing; these
// unpack the archive again, or raise.
bool unpacks_again(const CallRef& load) {
  for (const char* name :
       {"VOCDetection", "VOCSegmentation", "SBDataset", "Places365", "Kinetics", "Kinetics400"})
    if (load.call->name == name) return true;
  return false;
}

// Several processes run the script from its first line: of several nodes, or of srun.
bool starts_together(const Program& program) {
  if (facts::speaks_of(program, "srun") || facts::speaks_of(program, "SLURM")) return true;
  const auto& launches = program.launches();
  if (std::any_of(launches.begin(), launches.end(), facts::starts_several)) return true;
  const auto uses = trainer::uses(program);
  return std::any_of(uses.begin(), uses.end(), [](const trainer::Use& use) {
    const trainer::Argument* nodes = use.find("num_nodes");
    return nodes != nullptr && !trainer::is_one(nodes);
  });
}

// The first process is done with the line before fit() starts the others, which find all files
// there.
bool is_done_before_others(const Program& program, const CallRef& load) {
  const auto cls = program.enclosing_class(load.ref());
  if (unpacks_again(load) || cls || starts_together(program)) return false;
  const auto fits = program.calls_named("fit");
  return std::any_of(fits.begin(), fits.end(), [&](const CallRef& fit) {
    return only_runs_before(program, load.ref(), fit.ref());
  });
}

// What "ddp" repeats once for every rank, as it does the script: prepare_data() is the place that
// the Trainer keeps to one process of a node.
void check_downloads_of_script(const Program& program, Report& report) {
  if (!program.mentions("download")) return;
  const auto downloads = downloads_of(program);
  if (downloads.empty() || !has_lightning_ranks(program) || has_ranks_of_its_own(program)) return;
  // Whatever is asked for again below is there.
  if (std::any_of(downloads.begin(), downloads.end(),
                  [&](const CallRef& load) { return is_in_prepare_data(program, load.ref()); }))
    return;
  for (const CallRef& load : downloads) {
    if (is_kept_to_one(program, load.ref()) || !facts::is_reachable(program, load.ref())) continue;
    Finding& finding = report.at(
        load.keyword("download"), Confidence::likely,
        "the Trainer's \"ddp\" runs the script once for every rank: each of them downloads "
        "and unpacks the same files");
    finding.help = "Download in prepare_data(), which one process of a node runs.";
    if (is_done_before_others(program, load))
      tell_as_note(finding, "fit() starts the others, which find the files there");
  }
}

}  // namespace

void check_implicit_devices_or_strategy(const Program& program, Report& report) {
  check_downloads_of_script(program, report);
  for (const trainer::Use& use : trainer::uses(program)) {
    const auto* strategy = use.find("strategy");
    const std::string again = program.is_notebook() && strategy != nullptr
                                  ? starting_script_again(program, *strategy)
                                  : std::string();
    if (!again.empty()) {
      Finding& finding = trainer::flag(report, *strategy, Confidence::certain,
                                       again +
                                           " starts the script again for each rank, which a "
                                           "notebook cannot: MisconfigurationException");
      finding.severity = Severity::error;
      finding.help = "Use strategy=\"ddp_notebook\", or run it as a script.";
      continue;
    }
    if (!use.call || use.has_more || use.find("fast_dev_run")) continue;
    const auto* gpus = use.find("gpus");
    const auto* count = gpus;
    if (!is_many(program, gpus) && (is_on_gpus(use) || !use.find("accelerator")))
      count = use.find("devices");
    if (is_many(program, count) && !strategy && !use.find("plugins") &&
        (!use.find("accelerator") || is_on_gpus(use)) && !use.find("distributed_backend")) {
      Finding& finding = trainer::flag(
          report, *count, Confidence::likely,
          // The package `lightning` came with Lightning 2.
          program.imports("lightning")
              ? "several GPUs without a strategy: Lightning takes \"ddp\", which runs "
                "the script once for every rank"
              : "several GPUs without a strategy: Lightning 1.x uses ddp_spawn, 2.x "
                "ddp");
      finding.help = "State the strategy: strategy=\"ddp\".";
      tell_as_note(finding);  // both train on all of them
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
