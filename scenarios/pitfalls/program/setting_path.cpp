#include "scenarios/pitfalls/program/setting_path.hpp"

#include "diagnose/config/python_config.hpp"
#include "scenarios/pitfalls/program/facts.hpp"

#include <algorithm>

namespace bench::pitfalls::facts {

using diagnose::Field;
using diagnose::Kind;
using diagnose::Source;

namespace {

constexpr int kNames = 6;

// yaml.safe_load(file), Config.fromfile(path), load_config(): what it gives is a configuration.
bool reads_config(const CallRef& call) {
  const std::string_view function = call.module->text(call.call->function);
  return contains(function, "yaml") || contains(lowered(function), "conf") ||
         call.call->name == "safe_load" || call.call->name == "fromfile" ||
         call.call->name == "compose" || call.call->name.starts_with("parse_");
}

class PathReader {
 public:
  explicit PathReader(const Program& program) : program_(program) {}

  // Adds the parts of the expression; false where it is no path.
  bool read(Ref at, int depth) {
    if (depth > kNames) return false;
    switch (at.kind()) {
      case Kind::identifier:
        return read_name(at, depth);
      case Kind::attribute:
        if (at.child(Field::object).text() == "self" && !read_held(at, depth)) return false;
        if (at.child(Field::object).text() == "self") return true;
        return read(at.child(Field::object), depth + 1) && add(at.child(Field::attribute).text());
      case Kind::subscript: {
        const auto key = program_.string(at.child(Field::subscript));
        return key && at.child(Field::subscript).kind() == Kind::string &&
               read(at.child(Field::value), depth + 1) && add(*key);
      }
      case Kind::call:
        return read_call(program_.as_call(at), depth);
      default:
        return false;
    }
  }

  SettingPath take() { return std::move(path_); }

 private:
  bool add(std::string_view part) {
    if (part.empty()) return false;
    path_.parts.emplace_back(part);
    return true;
  }

  // self.cfg, by what it holds or by its own name.
  bool read_held(Ref at, int depth) {
    return read_source(at, at.child(Field::attribute).text(), depth);
  }

  bool read_name(Ref at, int depth) {
    return at.text() != "self" && read_source(at, at.text(), depth);
  }

  bool read_source(Ref at, std::string_view name, int depth) {
    const auto& sources = program_.sources(at);
    const bool is_one =
        sources.size() == 1 && !(sources.front().ref == at) &&
        (sources.front().how == Source::How::value || sources.front().how == Source::How::unknown ||
         sources.front().how == Source::How::argument);
    if (!is_one) return add(name);
    const Ref held = sources.front().ref;
    if (sources.front().how == Source::How::argument) return read_option(program_.as_call(held));
    switch (held.kind()) {
      case Kind::attribute:
      case Kind::subscript:
        return read(held, depth + 1);
      case Kind::call:
        if (const CallRef call = program_.as_call(held); call && is_question(call))
          return read_call(call, depth + 1);
        else if (call && !diagnose::is_config_name(name) && reads_config(call))
          return add("config");
        return add(name);
      case Kind::dictionary:
        return false;  // what is in it is written in the program
      default:
        return add(name);
    }
  }

  bool read_option(const CallRef& option) {
    for (std::size_t i = 0; const Ref word = option.positional(i); ++i) {
      auto name = program_.string(word);
      if (!name || !name->starts_with("--")) continue;
      std::string key = program_.string(option.keyword("dest")).value_or(name->substr(2));
      std::replace(key.begin(), key.end(), '-', '_');
      path_.option = option.ref();
      return add("args") && add(key);
    }
    return false;
  }

  // cfg.get("lr"), getattr(cfg, "lr")
  static bool is_question(const CallRef& call) {
    return (call.call->name == "get" && call.receiver() &&
            call.positional(0).kind() == Kind::string) ||
           (call.module->text(call.call->function) == "getattr" &&
            call.positional(1).kind() == Kind::string);
  }

  bool read_call(const CallRef& call, int depth) {
    if (!call) return false;
    if (!is_question(call)) return reads_config(call) && add("config");
    const bool is_get = call.call->name == "get";
    const std::size_t key = is_get ? 0 : 1;
    if (!read(is_get ? call.receiver() : call.positional(0), depth + 1)) return false;
    if (const Ref otherwise = call.positional(key + 1)) path_.defaults.push_back(otherwise);
    return add(program_.string(call.positional(key)).value_or(""));
  }

  const Program& program_;
  SettingPath path_;
};

// train_cfg: "train"; cfg, self.hparams, config_args: nothing.
std::string meaning_of(std::string_view holder) {
  std::string out = lowered(holder);
  for (const std::string_view word :
       {"configuration", "config", "conf", "cfg", "arguments", "args", "hparams", "hyperparams",
        "parameters", "params", "options", "option", "opts", "opt", "settings", "flags", "hps",
        "hyp", "_"})
    for (std::size_t at = out.find(word); at != std::string::npos && out != "optim";
         at = out.find(word))
      out.erase(at, word.size());
  return out.size() > 1 ? out : std::string();
}

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('.') + 1); }

bool ends_in(std::string_view path, std::string_view suffix) {
  return path.ends_with(suffix) &&
         (path.size() == suffix.size() || path[path.size() - suffix.size() - 1] == '.');
}

}  // namespace

std::string SettingPath::below_holder() const {
  std::string out;
  for (std::size_t i = holder + 1; i < parts.size(); ++i)
    out += (out.empty() ? "" : ".") + parts[i];
  return out;
}

SettingPath setting_path(const Program& program, Ref expression) {
  PathReader reader(program);
  if (!reader.read(expression, 0)) return {};
  SettingPath out = reader.take();
  if (out.parts.size() < 2) return {};
  for (std::size_t i = out.parts.size() - 1; i > 0; --i)
    if (diagnose::is_config_name(out.parts[i - 1])) {
      out.holder = i - 1;
      return out;
    }
  return {};
}

bool means(const SettingPath& setting, std::size_t count, std::string_view file,
           std::string_view path) {
  std::string suffix;
  for (std::size_t i = setting.parts.size() - count; i < setting.parts.size(); ++i)
    suffix += (suffix.empty() ? "" : ".") + setting.parts[i];
  if (ends_in(path, suffix)) return true;
  const std::size_t slash = file.rfind('/');
  const std::string_view folder = slash == file.npos ? "" : file.substr(0, slash);
  const std::string_view name = slash == file.npos ? file : file.substr(slash + 1);
  for (const std::string_view above :
       {folder.substr(folder.rfind('/') + 1), name.substr(0, name.rfind('.'))})
    if (std::string(above) + "." + std::string(path) == suffix) return true;
  return false;
}

bool may_mean_alone(const SettingPath& setting, std::string_view path) {
  if (setting.holder + 2 != setting.parts.size()) return false;
  const std::string meaning = meaning_of(setting.parts[setting.holder]);
  const std::size_t dot = path.rfind('.');
  if (meaning.empty() || dot == path.npos) return true;
  const std::string above = lowered(last_part(path.substr(0, dot)));
  return contains(above, meaning) || contains(meaning, above);
}

}  // namespace bench::pitfalls::facts
