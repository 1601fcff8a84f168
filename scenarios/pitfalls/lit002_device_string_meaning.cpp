#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/trainer.hpp"
#include "scenarios/pitfalls/words.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::lowered;
using diagnose::Source;

namespace {

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

// type=str of an option that asks for a count: "number of GPUs", --num_gpus. One that asks for
// indices ("0,1") is a string on purpose.
bool reads_count_as_text(const Program& program, const CallRef& option, std::string_view name) {
  if (option.keyword("type").text() != "str") return false;
  const std::string help = lowered(program.string(option.keyword("help")).value_or(""));
  const auto given = program.evaluate(option.keyword("default"));
  if (says_any(help, {"id", "index", "indices", "list", "comma", "which", ","}) ||
      (given.is_string() && !all_digits(given.string)))
    return false;
  return says_any(help, {"number of", "how many", "num gpu", "count"}) ||
         says_any(name, {"num", "n_"});
}

// The string reaches the Trainer as its number of devices.
bool reaches_trainer(const Program& program, const CallRef& option) {
  for (const trainer::Use& use : trainer::uses(program))
    for (const std::string_view key : {"gpus", "devices"})
      if (const auto* argument = use.find(key); argument && argument->node)
        for (const Source& source : program.sources(argument->node))
          if (source.ref == option.ref()) return true;
  return false;
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
    const bool typeless = !option.keyword("type") && (name == "--gpus" || name == "--devices");
    if ((!typeless && !reads_count_as_text(program, option, name)) || option.keyword("action") ||
        option.keyword("nargs") || !program.uses(Api::lightning_trainer) ||
        !reaches_trainer(program, option))
      continue;
    report
        .at(option.ref(), Confidence::certain,
            name + (typeless ? " has no type" : " counts GPUs and is read as text") +
                ": \"3\" is a string, which means the first 3 GPUs since Lightning 1.5 and GPU 3 "
                "before")
        .help = typeless ? "Add type=int for a count." : "Write type=int.";
  }
}

}  // namespace bench::pitfalls
