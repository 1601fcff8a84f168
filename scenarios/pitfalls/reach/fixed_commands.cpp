#include "scenarios/pitfalls/reach/fixed_commands.hpp"

#include "diagnose/model/value.hpp"

#include <optional>
#include <sstream>
#include <string>

namespace bench::pitfalls::facts {

using diagnose::Kind;
using diagnose::LaunchLine;
using diagnose::LaunchWord;
using diagnose::Value;

namespace {

using Words = std::vector<LaunchWord>;

// The words of "--data b".split().
std::optional<Words> words_of_split(const Program& program, const CallRef& split) {
  const auto text = split ? program.string(split.receiver()) : std::nullopt;
  if (!text || split.call->name != "split" || split.positional(0)) return std::nullopt;
  Words out;
  std::istringstream in(*text);
  for (std::string word; in >> word;) {
    out.emplace_back();
    out.back().text = word;
  }
  return out;
}

std::optional<Words> written_words(const Program& program, Ref given) {
  if (!given) return std::nullopt;
  if (const CallRef call = program.as_call(given)) return words_of_split(program, call);
  for (const char* method : {"append", "extend", "insert"})
    for (const CallRef& each : program.calls_named(method))
      if (program.same_variable(each.receiver(), given)) return std::nullopt;
  const Ref list = program.written(given);
  if (list.kind() != Kind::list) return std::nullopt;
  const Value value = program.evaluate(list);
  if (value.type != Value::Type::list) return std::nullopt;
  Words out;
  for (const Value& item : value.items) {
    if (!item.is_string()) return std::nullopt;
    out.emplace_back();
    out.back().text = item.string;
  }
  return out;
}

}  // namespace

std::vector<LaunchLine> fixed_commands(const Program& program) {
  std::vector<LaunchLine> out;
  for (const std::string_view name : {"parse_args", "parse_known_args"})
    for (const CallRef& parse : program.calls_named(name)) {
      // Under the guard of a file that is imported another script begins.
      if (parse.module != &program.root() && parse.module->under_main_guard(parse.call->node))
        continue;
      auto words = written_words(program, parse.argument(0, "args"));
      if (!words) return {};
      out.emplace_back();
      out.back().launcher = diagnose::Launcher::python;
      out.back().script_arguments = std::move(*words);
    }
  return out;
}

}  // namespace bench::pitfalls::facts
