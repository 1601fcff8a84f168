#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/frameworks/trainer.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Source;

namespace {

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

// An option without a type, or with type=str. Where the default is a word ("auto") or a list
// ("0,1"), it is meant to be a string.
bool gives_string(const Program& program, const CallRef& option) {
  if (option.keyword("action") || option.keyword("nargs") || option.keyword("choices"))
    return false;
  const Ref type = option.keyword("type");
  const auto standard = program.string(option.keyword("default"));
  return (!type || type.text() == "str") && (!standard || all_digits(*standard));
}

// strategy= and devices= came with Lightning 1.5, where a string of digits is a count, and the
// option's help says that it is one.
bool is_meant_as_count(const Program& program, const trainer::Use& use, const CallRef& option) {
  if (use.find("strategy") == nullptr && use.find("devices") == nullptr) return false;
  const auto help = program.string(option.keyword("help"));
  return help && says_any(*help, {"number of gpus", "number of devices", "how many"}) &&
         !says_any(*help, {"id", "index", "which", "comma"});
}

// devices=str(n): a count that becomes a string on the way; os.environ.get("GPUS", "2") is one.
bool is_count_as_string(const Program& program, Ref value) {
  const CallRef made = program.as_call(value);
  if (made && made.call->api == Api::getenv) {
    const auto standard = program.string(made.positional(1));
    return standard && all_digits(*standard);
  }
  const Ref inner = made ? made.positional(0) : Ref{};
  return inner && made.ref().child(diagnose::Field::function).text() == "str" &&
         !made.positional(1) && inner.kind() != diagnose::Kind::list && !program.string(inner);
}

void check_counts_as_strings(const Program& program, Report& report) {
  for (const trainer::Use& use : trainer::uses(program))
    for (const std::string_view name : {"gpus", "devices"}) {
      const trainer::Argument* argument = use.find(name);
      if (argument == nullptr || !argument->node) continue;
      for (const Source& source : program.sources(argument->node))
        if (is_count_as_string(program, source.ref)) {
          report
              .at(source.ref, Confidence::likely,
                  std::string(name) +
                      " is a string here: \"3\" means the first 3 GPUs since Lightning 1.5 "
                      "and GPU 3 before")
              .help = "Pass the number.";
          break;
        }
    }
}

// The options whose values come to the Trainer as its number of devices, whatever they are called.
void check_options(const Program& program, Report& report) {
  std::vector<Ref> told;
  for (const trainer::Use& use : trainer::uses(program))
    for (const std::string_view key : {"gpus", "devices"}) {
      const auto* argument = use.find(key);
      if (argument == nullptr || !argument->node) continue;
      for (const Source& source : program.sources(argument->node)) {
        const CallRef option = program.as_call(source.ref);
        if (source.how != Source::How::argument || !option || !gives_string(program, option) ||
            is_meant_as_count(program, use, option) ||
            std::find(told.begin(), told.end(), source.ref) != told.end())
          continue;
        told.push_back(source.ref);
        report
            .at(option.ref(), Confidence::certain,
                program.string(option.positional(0)).value_or("the option") +
                    (option.keyword("type") ? " has the type of a string" : " has no type") +
                    ": \"3\" is a string, which means the first 3 GPUs since Lightning "
                    "1.5 and GPU 3 before")
            .help = "Add type=int for a count.";
      }
    }
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
  check_counts_as_strings(program, report);
  check_options(program, report);
}

}  // namespace bench::pitfalls
