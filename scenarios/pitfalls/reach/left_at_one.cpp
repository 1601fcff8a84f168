#include "scenarios/pitfalls/reach/left_at_one.hpp"

#include "diagnose/launch/overrides.hpp"
#include "diagnose/model/role_names.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/setting_path.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <cctype>
#include <vector>

namespace bench::pitfalls::facts {

using diagnose::DefKind;
using diagnose::Field;
using diagnose::Kind;
using diagnose::NodeId;
using diagnose::ShippedValue;
using diagnose::Source;
using diagnose::Value;

namespace {

constexpr int kNamesOfCount = 4;  // passes = args.passes, self.passes = passes

enum class Count : std::uint8_t { unknown, one, more };

Count count_of(const Value& value) {
  if (value.type == Value::Type::none) return Count::one;  // nothing is set
  if (!value.is_integer()) return Count::unknown;
  return value.integer <= 1 ? Count::one : Count::more;
}

// Of an option without a default nobody says what it is.
Count default_of(const Program& program, const CallRef& option) {
  const Ref given = option.keyword("default");
  return given ? count_of(program.evaluate(given)) : Count::unknown;
}

std::string key_of(const Program& program, const CallRef& option) {
  if (auto dest = program.string(option.keyword("dest"))) return *dest;
  for (std::size_t i = 0; const Ref word = option.positional(i); ++i) {
    auto name = program.string(word).value_or("");
    if (!name.starts_with("--")) continue;
    name.erase(0, 2);
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
  }
  return {};
}

// -p, --passes, --accumulation: all that a line may name the option by.
std::vector<std::string> names_of(const Program& program, const CallRef& option) {
  std::vector<std::string> out;
  for (std::size_t i = 0; const Ref word = option.positional(i); ++i)
    if (auto name = program.string(word); name && name->starts_with("-")) out.push_back(*name);
  return out;
}

// import train, from package import (data, train), of a whole file's text.
bool imports_script(std::string_view text, std::string_view name) {
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at > 0 && is_word(text[at - 1])) || (end < text.size() && is_word(text[end]))) continue;
    const std::string_view before = text.substr(0, at);
    const std::size_t begin = before.rfind('\n') + 1;  // 0 on the first line
    if (contains(text.substr(begin, text.find('\n', at) - begin), "import")) return true;
    const std::size_t open = before.rfind('(');
    if (open != before.npos && before.find(')', open) == before.npos &&
        before.substr(0, open).ends_with("import "))
      return true;
  }
  return false;
}

// The names that a count is set under, and whether it is 1 where nobody sets it.
class Settings {
 public:
  explicit Settings(const Program& program) : program_(program) {}

  const std::vector<std::string>& keys() const { return keys_; }
  const std::vector<std::string>& options() const { return options_; }  // with their dashes
  bool starts_at_one() const { return starts_at_one_; }

  // False where the count may be more without anybody setting it.
  bool read(Ref count, int depth = 0) {
    if (!count || depth > kNamesOfCount) return false;
    if (count.kind() == Kind::integer) return note(count_of(program_.evaluate(count)));
    if (count.kind() == Kind::boolean)  // args.passes or 1
      return read(count.child(Field::left), depth + 1) &&
             read(count.child(Field::right), depth + 1);
    if (const CallRef call = program_.as_call(count)) return read_call(call, depth);
    if (count.kind() != Kind::identifier && count.kind() != Kind::attribute &&
        count.kind() != Kind::subscript)
      return false;
    return read_setting(count, depth);
  }

 private:
  bool note(Count count) {
    starts_at_one_ = starts_at_one_ || count == Count::one;
    return count != Count::more;
  }

  void add(std::string key) {
    if (!key.empty() && std::find(keys_.begin(), keys_.end(), key) == keys_.end())
      keys_.push_back(std::move(key));
  }

  // Long ones are looked for as keys too: in config files, with underscores.
  void add_option(const std::string& name) {
    options_.push_back(name);
    if (!name.starts_with("--")) return;
    std::string key = name.substr(2);
    std::replace(key.begin(), key.end(), '-', '_');
    add(std::move(key));
  }

  // int(args.passes), max(1, args.passes), cfg.get("passes", 1)
  bool read_call(const CallRef& call, int depth) {
    if (call.call->name == "int" || call.call->name == "max") {
      for (std::size_t i = 0; const Ref part = call.positional(i); ++i)
        if (!read(part, depth + 1)) return false;
      return static_cast<bool>(call.positional(0));
    }
    const SettingPath setting = setting_path(program_, call.ref());
    if (!setting) return false;
    add(setting.key());
    return std::all_of(setting.defaults.begin(), setting.defaults.end(),
                       [&](Ref given) { return note(count_of(program_.evaluate(given))); });
  }

  bool read_setting(Ref setting, int depth) {
    const auto& sources = program_.sources(setting);
    bool known = !sources.empty();
    for (const Source& source : sources) {
      switch (source.how) {
        case Source::How::argument: {
          const CallRef option = program_.as_call(source.ref);
          add(key_of(program_, option));
          for (const std::string& name : names_of(program_, option)) add_option(name);
          if (!note(default_of(program_, option))) return false;
          break;
        }
        case Source::How::value:
          if (source.ref == setting) {
            add_key(setting);
          } else if (!read(source.ref, depth + 1)) {
            return false;
          }
          break;
        case Source::How::unknown:
          add_key(source.ref);
          break;
        default:
          return false;
      }
    }
    return known && !keys_.empty();
  }

  // training_args.passes of a library's options, cfg["passes"], cfg.TRAIN.PASSES.
  void add_key(Ref setting) {
    if (const SettingPath path = setting_path(program_, setting)) {
      add(path.key());
    } else if (setting.kind() == Kind::attribute) {
      add(std::string(setting.child(Field::attribute).text()));
    }
    if (program_.mentions("TrainingArguments") && !keys_.empty() &&
        keys_.back() == "gradient_accumulation_steps")
      note(Count::one);  // Hugging Face's default
  }

  const Program& program_;
  std::vector<std::string> keys_;
  std::vector<std::string> options_;
  bool starts_at_one_ = false;
};

class Setters {
 public:
  Setters(const Program& program, const std::string& key) : program_(program), key_(key) {}

  bool say_one() const { return say_one_; }

  // Something sets the key to more, or to what is not known.
  bool any_sets_more() { return in_program() || in_lines() || in_files() || in_commands(); }

 private:
  // Unknown counts as more: somebody sets it, to whatever.
  bool is_more(const Value& value) {
    const Count count = count_of(value);
    say_one_ = say_one_ || count == Count::one;
    return count != Count::one;
  }

  bool in_lines() {
    for (const diagnose::LaunchLine& launch : program_.launches()) {
      std::string words;
      for (const diagnose::LaunchWord& word : launch.script_arguments) words += word.text + " ";
      for (const Value& value : diagnose::overrides_in(words, key_))
        if (is_more(value)) return true;
    }
    return false;
  }

  bool in_files() {
    for (const std::string& asked : {key_, "--" + key_})  // the second is what pages give
      for (const ShippedValue& each : program_.shipped(asked))
        if (!is_of_another(each.script) && is_more(each.value)) return true;
    return false;
  }

  // Lines of a script that imports this one set what this one reads.
  bool is_of_another(const std::string& script) const {
    const std::string_view own = program_.root().path();
    const std::string name(own.substr(own.rfind('/') + 1));
    if (script.empty() || script == name) return false;
    const std::string stem = name.substr(0, name.rfind('.'));
    return !program_.any_in_project(
        "imports " + stem, [&stem](std::string_view text) { return imports_script(text, stem); });
  }

  // ["torchrun", "train.py", "--passes", "4"] of a file that starts others.
  bool in_commands() const {
    return program_.any_in_project("passes more than one as --" + key_,
                                   [this](std::string_view text) { return passes_more(text); });
  }

  bool passes_more(std::string_view text) const {
    std::string dashed = key_;
    std::replace(dashed.begin(), dashed.end(), '_', '-');
    for (const std::string& name : {"--" + key_, "--" + dashed})
      for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
        const std::size_t value = text.find_first_not_of("\"', =\t\r\n", at + name.size());
        const std::size_t end = std::min(text.find_first_not_of("0123456789", value), text.size());
        if (value == text.npos || value == at + name.size() || end == value) continue;
        if (text.substr(value, end - value).find_first_not_of("01") != text.npos || end - value > 1)
          return true;
      }
    return false;
  }

  // cfg.passes = 4, cfg.passes *= 4, train(passes=4), {"passes": 4} anywhere in the program. A
  // value that is handed on is followed no further: an option behind it is looked at as such.
  bool in_program() {
    for (const CallRef& call : program_.calls_named("setattr"))
      if (program_.string(call.positional(1)) == key_ && is_more_at(call.positional(2)))
        return true;
    for (const diagnose::Module* module : program_.modules()) {
      if (!module->tree().holds(key_)) continue;
      const auto& tree = module->tree();
      for (NodeId id = 0; id < tree.size(); ++id)
        if (changes(Ref{module, id}) ||
            (given_at({module, id}) && gives_more(given_at({module, id}))))
          return true;
    }
    return false;
  }

  bool is_more_at(Ref given) { return !given || is_more(program_.evaluate(given)); }

  bool changes(Ref at) const {
    return at.kind() == Kind::augmented_assignment && is_key(at.child(Field::left));
  }

  // args.passes, passes, cfg["passes"]
  bool is_key(Ref name) const {
    return (name.kind() == Kind::attribute && name.child(Field::attribute).text() == key_) ||
           (name.kind() == Kind::identifier && name.text() == key_) ||
           (name.kind() == Kind::subscript &&
            program_.string(name.child(Field::subscript)) == key_);
  }

  bool gives_more(Ref given) {
    const Count count = count_of(program_.evaluate(given));
    say_one_ = say_one_ || count == Count::one;
    return count == Count::more;
  }

  Ref given_at(Ref at) const {
    switch (at.kind()) {
      case Kind::keyword_argument:
        return at.child(Field::name).text() == key_ ? at.child(Field::value) : Ref{};
      case Kind::pair:
        return program_.string(at.child(Field::key)) == key_ ? at.child(Field::value) : Ref{};
      case Kind::assignment:
        return is_key(at.child(Field::left)) ? at.child(Field::right) : Ref{};
      default:
        return {};
    }
  }

  const Program& program_;
  const std::string& key_;
  bool say_one_ = false;
};

// -p 4 or -p4 in a launch line. The value of an option that is not written out may be anything.
bool is_raised_by(const diagnose::LaunchLine& launch, const std::string& option) {
  const auto& words = launch.script_arguments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string_view text = words[i].text;
    if (!text.starts_with(option)) continue;
    text.remove_prefix(option.size());
    if (text.empty() && i + 1 < words.size()) text = words[i + 1].text;
    if (text.starts_with("=")) text.remove_prefix(1);
    if (text != "0" && text != "1") return true;
  }
  return false;
}

// Long options are looked for as keys.
bool is_raised_by_short_option(const Program& program, const std::vector<std::string>& options) {
  const auto& launches = program.launches();
  return std::any_of(options.begin(), options.end(), [&](const std::string& option) {
    return !option.starts_with("--") &&
           std::any_of(launches.begin(), launches.end(),
                       [&](const auto& launch) { return is_raised_by(launch, option); });
  });
}

}  // namespace

std::string left_at_one(const Program& program, Ref count) {
  Settings settings(program);
  if (!settings.read(count) || settings.keys().empty()) return {};
  if (is_raised_by_short_option(program, settings.options())) return {};
  // How a script alone is used nobody knows; in a project somebody would set it.
  bool is_known =
      settings.starts_at_one() && (!program.launches().empty() || program.modules().size() > 1);
  for (const std::string& key : settings.keys()) {
    Setters setters(program, key);
    if (setters.any_sets_more()) return {};
    is_known = is_known || setters.say_one();
  }
  return is_known ? settings.keys().front() + " is 1 unless it is set, and nothing here sets more"
                  : "";
}

}  // namespace bench::pitfalls::facts
