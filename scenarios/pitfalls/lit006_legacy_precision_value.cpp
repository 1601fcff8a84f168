#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/frameworks/trainer.hpp"
#include "scenarios/pitfalls/frameworks/trainer_signature.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

namespace bench::pitfalls {

using diagnose::Source;
using diagnose::Value;

namespace {

struct Legacy {
  Value value;
  bool is_choice = false;  // one of several values, none of which is a new name
};

std::string new_name(const Value& value) {
  const std::string text = value.is_string() ? value.string : trainer::spelling(value);
  return text == "16" ? "16-mixed" : text == "bf16" ? "bf16-mixed" : "";
}

// 16 if args.fp16 else 32. Where another choice is a new name, the script knows of both Lightnings.
Legacy legacy_of(const Program& program, const trainer::Argument& argument) {
  if (argument.value.known()) return {argument.value, false};
  Legacy legacy;
  if (argument.entry != nullptr) return legacy;
  for (const Source& source : program.sources(argument.node)) {
    if (source.how != Source::How::value) continue;
    const Value value = program.evaluate(source.ref);
    if (value.is_string() && facts::contains(value.string, "-")) return {};
    if (!new_name(value).empty()) legacy = {value, true};
  }
  return legacy;
}

std::string message(const Legacy& legacy) {
  const std::string spelled = "precision=" + trainer::spelling(legacy.value);
  const char* origin = legacy.value.is_default ? ", the default of the option,"
                       : legacy.is_choice      ? ", one of the choices,"
                                               : "";
  return spelled + origin +
         " is an old name for mixed precision; Lightning 2 warns, and it does not mean pure half "
         "precision";
}

// pytorch-lightning>=1.8: both Lightnings take the old name, and 1.x takes no other.
void weigh_by_oldest(const Program& program, Finding& finding) {
  const auto& versions = program.newest();
  if (versions.least_lightning >= trainer::kVersion2 || versions.lightning < trainer::kVersion2)
    return;
  tell_as_note(finding);
  finding.help += " The requirements allow Lightning 1.x too, which knows the old name alone.";
}

}  // namespace

void check_legacy_precision_value(const Program& program, Report& report) {
  for (const trainer::Use& use : trainer::uses(program)) {
    const auto* precision = use.find("precision");
    if (precision == nullptr) continue;
    const Legacy legacy = legacy_of(program, *precision);
    const std::string modern = new_name(legacy.value);
    if (modern.empty()) continue;
    Finding& finding = trainer::flag(
        report, *precision, legacy.value.is_default ? Confidence::likely : Confidence::certain,
        message(legacy));
    finding.help = "Write precision=\"" + modern + "\".";
    trainer::weigh_by_requirements(program, trainer::kVersion2, finding);
    weigh_by_oldest(program, finding);
    trainer::weigh_by_calls(program, finding);
    if (!legacy.is_choice && !legacy.value.is_default)
      trainer::fix(use, *precision, "precision=\"" + modern + "\"", "Write the full name", finding);
    const auto* accelerator = use.find("accelerator");
    if (accelerator && accelerator->value.is_string() && accelerator->value.string == "cpu" &&
        modern == "16-mixed")
      finding.help += " On the CPU it becomes bf16-mixed.";
  }
}

}  // namespace bench::pitfalls
