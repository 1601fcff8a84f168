#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/frameworks/trainer.hpp"
#include "scenarios/pitfalls/frameworks/trainer_signature.hpp"
#include "scenarios/pitfalls/program/edits.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>
#include <array>

namespace bench::pitfalls {

namespace {

// Removed arguments that have rules of their own.
constexpr auto kElsewhere = std::to_array<std::string_view>(
    {"gpus", "num_processes", "tpu_cores", "ipus", "distributed_backend"});

// Trainer.from_argparse_args(Namespace(**config)) in a script above the config takes the names that
// the signature has, and leaves the others out.
bool drops_unknown_names(const Program& program) {
  return program.any_beside([](std::string_view text) {
    const std::size_t at = text.find("Trainer.from_argparse_args(");
    if (at == std::string_view::npos || facts::contains(text, "LightningCLI(")) return false;
    const std::size_t line = text.rfind('\n', at);
    const std::size_t begin = line == std::string_view::npos ? 0 : line + 1;
    return !facts::contains(text.substr(begin, at - begin), "#");
  });
}

}  // namespace

void check_removed_trainer_argument(const Program& program, Report& report) {
  for (const trainer::Use& use : trainer::uses(program))
    for (const trainer::Argument& argument : use.arguments) {
      const trainer::SignatureEntry* entry = trainer::find_signature(argument.name);
      if (entry == nullptr || entry->removed == trainer::kNever ||
          std::find(kElsewhere.begin(), kElsewhere.end(), argument.name) != kElsewhere.end())
        continue;
      if (argument.entry != nullptr && drops_unknown_names(program)) continue;
      // use_amp in a file of settings may be any trainer's.
      if (argument.entry != nullptr && entry->since == 0) continue;
      Finding& finding = trainer::flag(
          report, argument, Confidence::certain,
          "Trainer(" + argument.name + "=...) was removed in Lightning " +
              trainer::version_text(entry->removed) + ": TypeError, unexpected keyword argument");
      finding.help = "Use " + std::string(entry->instead) + ".";
      trainer::weigh_by_requirements(program, entry->removed, finding);
      trainer::weigh_by_older_calls(program, entry->removed, finding);
      if (argument.name == "replace_sampler_ddp" && argument.node)
        trainer::fix(use, argument, "use_distributed_sampler=" + std::string(argument.node.text()),
                     "Rename it", finding);
      else if (use.call && argument.node &&
               (argument.name == "log_gpu_memory" || argument.name == "move_metrics_to_cpu" ||
                argument.name == "amp_backend"))
        remove_argument(use.call, argument.name, "Remove it", finding);
    }
}

}  // namespace bench::pitfalls
