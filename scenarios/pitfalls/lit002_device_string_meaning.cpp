#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/trainer.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Source;

namespace {

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

void check_device_string_meaning(const Program& program, Report& report) {
  for (const trainer::Use& use : trainer::uses(program))
    for (const std::string_view name : {"gpus", "devices"}) {
      const trainer::Argument* argument = use.find(name);
      if (argument == nullptr || !argument->value.is_string() ||
          !all_digits(argument->value.string))
        continue;
      const std::string& text = argument->value.string;
      Finding& finding = trainer::flag(
          report, *argument, Confidence::certain,
          text == "0"
              ? std::string(name) + "=\"0\" means no GPU since Lightning 1.5, and GPU 0 before"
              : std::string(name) + "=\"" + text + "\" means the first " + text +
                    " GPUs since Lightning 1.5, and GPU " + text + " before");
      finding.help =
          "Write a number for a count (" + text + ") and a list for an index ([" + text + "]).";
    }
  for (const CallRef& option : program.calls_named("add_argument")) {
    const std::string name = program.string(option.positional(0)).value_or("");
    if ((name != "--gpus" && name != "--devices") || option.keyword("type") ||
        option.keyword("action") || option.keyword("nargs"))
      continue;
    if (!program.uses(Api::lightning_trainer)) continue;
    bool used = false;
    for (const trainer::Use& use : trainer::uses(program))
      for (const std::string_view key : {"gpus", "devices"})
        if (const auto* argument = use.find(key); argument && argument->node)
          for (const Source& source : program.sources(argument->node))
            used = used || source.ref == option.ref();
    if (used)
      report
          .at(option.ref(), Confidence::certain,
              name +
                  " has no type: \"3\" is a string, which means the first 3 GPUs since Lightning "
                  "1.5 and GPU 3 before")
          .help = "Add type=int for a count.";
  }
}

}  // namespace bench::pitfalls
