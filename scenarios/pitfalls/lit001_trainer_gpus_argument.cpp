#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/frameworks/trainer.hpp"
#include "scenarios/pitfalls/frameworks/trainer_signature.hpp"

namespace bench::pitfalls {

using diagnose::LaunchWord;
using diagnose::Value;

namespace {

// The modern form of gpus=VALUE.
std::string modern_gpus(const Value& value) {
  using Type = Value::Type;
  const bool none = value.type == Type::none || (value.is_integer() && value.integer == 0) ||
                    (value.type == Type::list && value.items.empty());
  if (none) return "accelerator=\"cpu\", devices=1";
  return "accelerator=\"gpu\", devices=" + trainer::spelling(value);
}

// Beside accelerator="gpu" only the number is missing.
void fix_gpus(const trainer::Use& use, const trainer::Argument& gpus, Finding& finding) {
  if (use.find("devices") != nullptr) return;
  const std::string modern = modern_gpus(gpus.value);
  const trainer::Argument* accelerator = use.find("accelerator");
  if (accelerator == nullptr)
    return trainer::fix(use, gpus, modern, "Write accelerator and devices", finding);
  const bool names_gpus = accelerator->value.is_string() && (accelerator->value.string == "gpu" ||
                                                             accelerator->value.string == "cuda");
  if (names_gpus && modern.starts_with("accelerator=\"gpu\""))
    trainer::fix(use, gpus, modern.substr(modern.find("devices=")), "Write devices", finding);
}

}  // namespace

void check_trainer_gpus_argument(const Program& program, Report& report) {
  for (const trainer::Use& use : trainer::uses(program)) {
    for (const std::string_view name : {"gpus", "num_processes", "tpu_cores", "ipus"}) {
      const trainer::Argument* argument = use.find(name);
      if (argument == nullptr) continue;
      Finding& finding =
          trainer::flag(report, *argument, Confidence::certain,
                        "Trainer(" + std::string(name) +
                            "=...) was removed in Lightning 2.0: TypeError, unexpected "
                            "keyword argument");
      std::string modern;
      if (name == "gpus")
        modern = argument->value.known() ? modern_gpus(argument->value)
                                         : "accelerator=\"gpu\", devices=...";
      if (name == "num_processes")
        modern = "accelerator=\"cpu\", devices=" + trainer::spelling(argument->value);
      if (name == "tpu_cores")
        modern = "accelerator=\"tpu\", devices=" + trainer::spelling(argument->value);
      if (name == "ipus") modern = "accelerator=\"ipu\" (an extra package since 2.1)";
      finding.help = "Write " + modern + ".";
      trainer::weigh_by_requirements(program, trainer::kVersion2, finding);
      trainer::weigh_by_older_calls(program, trainer::kVersion2, finding);
      if (name == "gpus" && argument->value.known() && !argument->value.is_default)
        fix_gpus(use, *argument, finding);
    }
  }
  for (const auto& launch : program.launches())
    for (const LaunchWord& word : launch.script_arguments)
      if (word.text == "--trainer.gpus" || word.text.starts_with("--trainer.gpus="))
        report
            .at_word(launch.file, word, Confidence::certain,
                     "trainer.gpus was removed in Lightning 2.0")
            .help = "Use --trainer.accelerator=gpu --trainer.devices=N.";
}

}  // namespace bench::pitfalls
