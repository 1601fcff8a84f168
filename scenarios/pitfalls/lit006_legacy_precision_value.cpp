#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/trainer.hpp"
#include "scenarios/pitfalls/trainer_signature.hpp"

namespace bench::pitfalls {

using diagnose::Value;

void check_legacy_precision_value(const Program& program, Report& report) {
  for (const trainer::Use& use : trainer::uses(program)) {
    const auto* precision = use.find("precision");
    if (precision == nullptr || !precision->value.known() || precision->value.is_default) continue;
    const Value& value = precision->value;
    const std::string text = value.is_string() ? value.string : trainer::spelling(value);
    std::string modern;
    if (text == "16") modern = "16-mixed";
    if (text == "bf16") modern = "bf16-mixed";
    if (modern.empty()) continue;
    Finding& finding = trainer::flag(report, *precision, Confidence::certain,
                                     "precision=" + trainer::spelling(value) +
                                         " is an old name for mixed precision; Lightning 2 warns, "
                                         "and it does not mean pure half precision");
    finding.help = "Write precision=\"" + modern + "\".";
    trainer::weigh_by_requirements(program, trainer::kVersion2, finding);
    trainer::fix(*precision, "precision=\"" + modern + "\"", "Write the full name", finding);
    const auto* accelerator = use.find("accelerator");
    if (accelerator && accelerator->value.is_string() && accelerator->value.string == "cpu" &&
        text == "16")
      finding.help += " On the CPU it becomes bf16-mixed.";
  }
}

}  // namespace bench::pitfalls
