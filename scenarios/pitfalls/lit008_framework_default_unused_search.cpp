#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/frameworks/trainer.hpp"

namespace bench::pitfalls {

void check_framework_default_unused_search(const Program& program, Report& report) {
  for (const trainer::Use& use : trainer::uses(program)) {
    const auto* strategy = use.find("strategy");
    if (strategy == nullptr || !strategy->value.is_string()) continue;
    const std::string& name = strategy->value.string;
    if (name == "ddp_find_unused_parameters_true")
      trainer::flag(report, *strategy, Confidence::check,
                    "this strategy searches for unused parameters in every step")
          .help = "Use \"ddp\" if every parameter takes part: Lightning raises an error otherwise.";
    if (name == "ddp" || name == "ddp_spawn")
      trainer::flag(report, *strategy, Confidence::check,
                    "find_unused_parameters is True for this strategy in Lightning 1.2 to 1.9 and "
                    "False in 2.x")
          .help = "State it: DDPStrategy(find_unused_parameters=False).";
  }
}

}  // namespace bench::pitfalls
