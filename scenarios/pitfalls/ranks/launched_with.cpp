#include "scenarios/pitfalls/ranks/launched_with.hpp"

#include "diagnose/model/options.hpp"
#include "scenarios/pitfalls/program/set_options.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

namespace bench::pitfalls::facts {

using diagnose::LaunchLine;
using diagnose::LaunchWord;
using diagnose::Value;

namespace {

// --batch-size and --batch_size are one name to nobody but the reader: argparse wants the spelling.
std::vector<std::string> spellings(const Program& program, const CallRef& option) {
  std::vector<std::string> out;
  for (std::size_t i = 0; const Ref word = option.positional(i); ++i)
    if (auto text = program.string(word); text && text->starts_with("-")) out.push_back(*text);
  return out;
}

Value value_of_word(const LaunchWord& word) {
  Value value;
  if (!word.literal) return value;
  const char* end = word.text.data() + word.text.size();
  const auto parsed = std::from_chars(word.text.data(), end, value.integer);
  value.type =
      parsed.ec == std::errc() && parsed.ptr == end ? Value::Type::integer : Value::Type::string;
  value.string = value.is_string() ? word.text : "";
  return value;
}

std::string_view name_in(const LaunchWord& word) {
  return std::string_view(word.text).substr(0, word.text.find('='));
}

bool is_among(const std::vector<std::string>& names, const LaunchWord& word) {
  return std::find(names.begin(), names.end(), name_in(word)) != names.end();
}

bool is_given(const LaunchLine& launch, const std::vector<std::string>& names) {
  const auto& words = launch.script_arguments;
  return std::any_of(words.begin(), words.end(),
                     [&](const LaunchWord& word) { return is_among(names, word); });
}

}  // namespace

bool may_hold_options(const std::vector<LaunchWord>& words, std::size_t i) {
  const bool follows_option = i > 0 && words[i - 1].text.starts_with("--");
  return !words[i].literal && !follows_option && !words[i].text.starts_with("--");
}

std::optional<Value> value_in_line(const LaunchLine& launch, const std::vector<std::string>& names,
                                   const Value& unless_given) {
  const auto& words = launch.script_arguments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (may_hold_options(words, i)) return std::nullopt;
    if (!is_among(names, words[i])) continue;
    const std::size_t equals = words[i].text.find('=');
    LaunchWord given = words[i];
    if (equals == std::string::npos) {
      if (i + 1 == words.size()) return std::nullopt;
      given = words[i + 1];
    } else {
      given.text.erase(0, equals + 1);
    }
    const Value value = value_of_word(given);
    return value.known() ? std::optional(value) : std::nullopt;
  }
  return unless_given;
}

Value value_in_launch(const Program& program, const LaunchLine& launch, Ref expression) {
  const Value otherwise = program.evaluate(expression);
  const auto& sources = program.sources(expression);
  if (sources.size() != 1 || sources.front().how != diagnose::Source::How::argument)
    return otherwise;
  const auto names = spellings(program, program.as_call(sources.front().ref));
  return is_given(launch, names) ? value_in_line(launch, names, otherwise).value_or(Value{})
                                 : otherwise;
}

std::vector<Value> values_as_launched(const Program& program, Ref expression) {
  const auto& sources = program.sources(expression);
  if (sources.size() != 1 || sources.front().how != diagnose::Source::How::argument) return {};
  const auto names = spellings(program, program.as_call(sources.front().ref));
  std::vector<Value> out;
  for (const LaunchLine& launch : program.launches()) {
    const auto value = value_in_line(launch, names, program.evaluate(expression));
    if (!value) return {};
    out.push_back(*value);
  }
  return out;
}

namespace {

// --dist for --distributed, -ve for -v -e: argparse takes both.
bool may_stand_for(std::string_view word, std::string_view name) {
  if (word.size() < 2 || word[0] != '-' || word == "--") return false;
  if (word.size() < name.size() && name.starts_with(word)) return true;
  return word[1] != '-' && name.size() == 2 && word.find(name[1], 1) != word.npos;
}

bool may_be_shortened(const LaunchLine& launch, const std::vector<std::string>& names) {
  const auto& words = launch.script_arguments;
  return std::any_of(words.begin(), words.end(), [&](const LaunchWord& word) {
    return !is_among(names, word) &&
           std::any_of(names.begin(), names.end(),
                       [&](const std::string& name) { return may_stand_for(name_in(word), name); });
  });
}

Value boolean(bool is_true) {
  Value value;
  value.type = Value::Type::boolean;
  value.integer = is_true ? 1 : 0;
  return value;
}

// --amp: what stands behind such an option is another word.
std::optional<Value> switch_in_line(const LaunchLine& launch, const std::vector<std::string>& names,
                                    bool if_given, const Value& unless_given) {
  const auto& words = launch.script_arguments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (std::find(names.begin(), names.end(), words[i].text) != names.end())
      return boolean(if_given);
    if (may_hold_options(words, i)) return std::nullopt;
  }
  return unless_given.known() ? std::optional(unless_given) : std::nullopt;
}

// An option of type bool, for which any text but an empty one is true, or of a str2bool.
Value as_truth(Value value, std::string_view type, bool is_given) {
  if (type == "bool" && value.is_string()) return boolean(!value.string.empty());
  if (type == "bool" && is_given) return boolean(true);
  if (!value.is_string()) return value;
  if (value.string == "True" || value.string == "true") return boolean(true);
  if (value.string == "False" || value.string == "false") return boolean(false);
  return value;
}

}  // namespace

std::optional<Value> option_in_line(const Program& program, const CallRef& option,
                                    const LaunchLine& launch) {
  const auto names = spellings(program, option);
  if (names.empty() || may_be_shortened(launch, names) ||
      may_be_set_in_bulk(program, diagnose::attribute_of_option(option)))
    return std::nullopt;
  if (option.keyword("action") && !program.string(option.keyword("action"))) return std::nullopt;
  const std::string action = program.string(option.keyword("action")).value_or("store");
  const Ref given = option.keyword("default");
  if (action == "store_true" || action == "store_false") {
    const bool if_given = action == "store_true";
    return switch_in_line(launch, names, if_given,
                          given ? program.evaluate(given) : boolean(!if_given));
  }
  if (action != "store") return std::nullopt;
  Value unless_given;
  unless_given.type = Value::Type::none;
  if (given) unless_given = program.evaluate(given);
  auto value = value_in_line(launch, names, unless_given);
  if (!value || !value->known()) return std::nullopt;
  const Ref type = option.keyword("type");
  return as_truth(std::move(*value), type ? type.text() : std::string_view(),
                  is_given(launch, names));
}

}  // namespace bench::pitfalls::facts
