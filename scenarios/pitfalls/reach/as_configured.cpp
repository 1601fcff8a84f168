#include "scenarios/pitfalls/reach/as_configured.hpp"

#include "diagnose/config/python_config.hpp"
#include "diagnose/launch/overrides.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/setting_path.hpp"
#include "scenarios/pitfalls/program/words.hpp"
#include "scenarios/pitfalls/reach/decided.hpp"
#include "scenarios/pitfalls/reach/passed_by.hpp"

#include <algorithm>
#include <cstdio>

namespace bench::pitfalls::facts {

using diagnose::Api;
using diagnose::DefKind;
using diagnose::Field;
using diagnose::Kind;
using diagnose::NodeId;
using diagnose::Op;
using diagnose::ShippedValue;
using diagnose::Source;
using diagnose::Value;

namespace {

constexpr int kSettings = 4;  // names between a condition and the setting in it

// Left empty in a config so that a run fills it in: what to resume from, what to evaluate.
bool is_filled_in_by_a_run(std::string_view key) {
  const std::string name = lowered(key);
  const bool is_of_start =
      holds_any(name, {"resume", "ckpt", "checkpoint", "load", "restore", "pretrain", "weights",
                       "path", "file", "dir", "eval", "test", "infer"});
  // What a launcher gives, and how many GPUs there are.
  const bool is_of_launch = holds_any(name, {"rank", "world", "gpu", "nproc", "node", "device",
                                             "distrib", "ddp", "master", "launcher", "strategy"});
  return is_of_start || is_of_launch || name == "mode";
}

std::string text_of(const Value& value) {
  switch (value.type) {
    case Value::Type::none:
      return "null";
    case Value::Type::boolean:
      return value.integer != 0 ? "true" : "false";
    case Value::Type::integer:
      return std::to_string(value.integer);
    case Value::Type::number: {
      char text[32];
      std::snprintf(text, sizeof text, "%g", value.number);
      return text;
    }
    default:
      return "\"" + value.string + "\"";
  }
}

bool is_empty(const Value& value) {
  return value.type == Value::Type::none || value.is_false() ||
         (value.is_integer() && value.integer == 0);
}

// A default of None says that the value comes from elsewhere.
bool default_agrees(const Program& program, Ref given, const Value& value) {
  const Value other = program.evaluate(given);
  if (!other.known()) return false;
  if (other.type == Value::Type::none && is_empty(value)) return true;
  return same_value(other, value) == true;
}

bool option_agrees(const Program& program, const CallRef& option, const Value& value) {
  if (const Ref given = option.keyword("default")) return default_agrees(program, given, value);
  if (option.call->name.starts_with("DEFINE_"))
    return default_agrees(program, option.positional(1), value);
  const std::string action = program.string(option.keyword("action")).value_or("");
  if (action == "store_true" || action == "store_false")
    return value.type == Value::Type::boolean && value.is_false() == (action == "store_true");
  return !program.is_literal_true(option.keyword("required")) && is_empty(value);
}

// The option's name without dashes in front, as the attribute that holds it.
bool names_option(const Program& program, const CallRef& call, std::string_view key) {
  if (program.string(call.keyword("dest")) == key) return true;
  for (std::size_t i = 0; i < 3; ++i) {
    const Ref word = call.positional(i);
    if (word.kind() != Kind::string) continue;
    std::string name = program.string(word).value_or("");
    name = name.substr(0, name.find('/'));  // click: --clip/--no-clip
    name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
    std::replace(name.begin(), name.end(), '-', '_');
    if (name == key) return true;
  }
  return false;
}

bool options_agree(const Program& program, std::string_view key, const Value& value) {
  for (const diagnose::Module* module : program.modules())
    for (const diagnose::Call& each : module->calls()) {
      const CallRef call{module, &each};
      const bool declares = each.name == "add_argument" || each.name == "option" ||
                            each.name == "Option" || each.name.starts_with("DEFINE_");
      if (declares && names_option(program, call, key) && !option_agrees(program, call, value))
        return false;
    }
  return true;
}

// The object is a configuration by its name, or the section that the setting stands in.
bool is_held_by(const Program& program, const SettingPath& setting, Ref object) {
  if (setting_path(program, object)) return true;
  const std::string_view text = object.text();
  const std::string_view name = text.substr(text.rfind('.') + 1);
  return diagnose::is_config_name(name) ||
         lowered(name) == lowered(setting.parts[setting.parts.size() - 2]);
}

// cfg.debug = True, class Config: debug: bool = True, and debug = True in a file's own level;
// neither self.debug nor logger.debug is the configuration's.
bool sets_setting(const Program& program, const SettingPath& setting,
                  const diagnose::Module& module, const diagnose::Def& def) {
  if (def.kind == DefKind::parameter || def.kind == DefKind::import ||
      def.kind == DefKind::function || def.kind == DefKind::class_definition)
    return false;
  if (!def.is_attribute) {
    const Kind scope = module.tree()[def.scope].kind;
    return scope == Kind::class_definition || scope == Kind::module;
  }
  return is_held_by(program, setting, Ref{&module, def.target}.child(Field::object));
}

bool assignments_agree(const Program& program, const SettingPath& setting, const Value& value) {
  const std::string& key = setting.key();
  for (const diagnose::Module* module : program.modules()) {
    for (const bool attribute : {true, false})
      for (const auto index : module->defs_of(key, attribute)) {
        const diagnose::Def& def = module->defs()[index];
        if (!sets_setting(program, setting, *module, def)) continue;
        const Ref given{module, def.value};
        // debug = cfg.debug at a file's own level hands the setting on.
        if (!attribute && setting_path(program, given)) continue;
        if (def.kind != DefKind::assign || def.element >= 0 || !given ||
            !default_agrees(program, given, value))
          return false;
      }
    // cfg["debug"] = True
    for (const NodeId node : module->nodes_of(Kind::assignment)) {
      const Ref left = Ref{module, node}.child(Field::left);
      if (left.kind() != Kind::subscript ||
          program.string(left.child(Field::subscript)).value_or("") != key)
        continue;
      if (!default_agrees(program, Ref{module, node}.child(Field::right), value)) return false;
    }
  }
  return true;
}

// set_defaults(clip=True), {"clip": True}, setattr(cfg, "clip", True), "clip=true": the program
// gives the key a value of its own in some other way.
bool is_given_otherwise(const Program& program, const std::string& key, const Value& value) {
  const auto differs = [&](Ref given) {
    const Value other = given ? program.evaluate(given) : Value{};
    return other.known() && !default_agrees(program, given, value);
  };
  for (const diagnose::Module* module : program.modules()) {
    if (!module->tree().holds(key)) continue;
    const auto& tree = module->tree();
    for (NodeId id = 0; id < tree.size(); ++id) {
      const Ref at{module, id};
      if (tree[id].kind == Kind::keyword_argument && at.child(Field::name).text() == key &&
          differs(at.child(Field::value)))
        return true;
      if (tree[id].kind != Kind::string) continue;
      const std::string text = program.string(at).value_or("");
      const Kind above = tree[tree[id].parent].kind;
      if (text == key && above == Kind::pair &&
          differs({module, tree.child(tree[id].parent, Field::value)}))
        return true;
      const CallRef call = program.as_call(at.with(tree[tree[id].parent].parent));
      if (text == key && call && (call.call->name == "setattr" || call.call->name == "setdefault"))
        return true;
      if (text.size() > key.size() && !diagnose::overrides_in(text, key).empty() &&
          contains(text, "="))
        return true;
    }
    for (const NodeId node : module->nodes_of(Kind::augmented_assignment)) {
      const Ref left = Ref{module, node}.child(Field::left);
      if (left.kind() == Kind::subscript &&
          program.string(left.child(Field::subscript)).value_or("") == key)
        return true;
    }
  }
  return false;
}

// What --launch gives, or a launch line of a file that is not looked at for overrides.
bool launches_agree(const Program& program, const std::string& key, const Value& value) {
  for (const diagnose::LaunchLine& launch : program.launches()) {
    std::string words;
    for (const diagnose::LaunchWord& word : launch.script_arguments) words += word.text + " ";
    for (const Value& given : diagnose::overrides_in(words, key))
      if (!given.known() || same_value(given, value) != true) return false;
  }
  return true;
}

// What all that the setting may mean in the project's config files agrees on.
std::optional<Value> agreed(const SettingPath& setting, const std::vector<ShippedValue>& shipped) {
  using Place = ShippedValue::Place;
  // Below the object: config.clip is not what a file named config.yaml says alone.
  for (std::size_t count = setting.parts.size() - 1 - setting.holder; count > 0; --count) {
    std::optional<Value> value;
    bool in_config = false;
    bool differs = false;
    for (const ShippedValue& each : shipped) {
      if (each.place != Place::command && !means(setting, count, each.file, each.path)) continue;
      if (each.place == Place::config) {
        if (count == 1 && !may_mean_alone(setting, each.path)) return std::nullopt;
        in_config = true;
      }
      if (!value) value = each.value;
      differs = differs || !each.value.known() || same_value(*value, each.value) != true;
    }
    if (in_config) return differs ? std::nullopt : value;
  }
  return std::nullopt;
}

class Configured {
 public:
  explicit Configured(const Program& program) : program_(program) {}

  // "grad_clip is 0", of the last setting that was asked for.
  const std::string& because() const { return because_; }

  std::optional<Value> value_of(Ref at, int depth) {
    if (!at || depth > kSettings) return std::nullopt;
    switch (at.kind()) {
      case Kind::not_expression:
      case Kind::comparison:
      case Kind::boolean:
        return decided_value(program_, at, [&](Ref part) { return value_of(part, depth + 1); });
      case Kind::binary:
        return remainder_of_one(at, depth);
      case Kind::identifier:
      case Kind::attribute:
      case Kind::subscript:
      case Kind::call:
        break;
      default:
        return std::nullopt;
    }
    if (const SettingPath setting = setting_path(program_, at)) return shipped_for(setting);
    const auto& sources = program_.sources(at);
    if (sources.size() != 1 || sources.front().how != Source::How::value ||
        sources.front().ref == at)
      return std::nullopt;
    return value_of(sources.front().ref, depth + 1);
  }

  bool is_passed_by(Ref node) {
    return facts::is_passed_by(program_, node, [&](Ref part) { return value_of(part, 0); });
  }

 private:
  // (step + 1) % passes, where passes is 1.
  std::optional<Value> remainder_of_one(Ref at, int depth) {
    if (at.module->tree()[at.node].op != Op::modulo) return std::nullopt;
    const auto passes = value_of(at.child(Field::right), depth + 1);
    if (!passes || !passes->is_integer() || passes->integer != 1) return std::nullopt;
    Value zero;
    zero.type = Value::Type::integer;
    return zero;
  }

  std::optional<Value> shipped_for(const SettingPath& setting) {
    const std::string& key = setting.key();
    if (is_filled_in_by_a_run(key)) return std::nullopt;
    auto value = agreed(setting, program_.shipped(key));
    // An empty text waits for one, too. The default of an option is overruled by a config file that
    // every line names.
    if (!value || (value->is_string() && value->string.empty())) return std::nullopt;
    const bool defaults_agree =
        std::all_of(setting.defaults.begin(), setting.defaults.end(),
                    [&](Ref given) { return default_agrees(program_, given, *value); });
    if (!launches_agree(program_, key, *value) || !assignments_agree(program_, setting, *value) ||
        is_given_otherwise(program_, key, *value))
      return std::nullopt;
    if ((!defaults_agree || !options_agree(program_, key, *value)) && !is_read_by_all_lines(key))
      return std::nullopt;
    because_ = setting.below_holder() + " is " + text_of(*value) + " in the config files";
    return value;
  }

  // train.py --config configs/base.yaml, of a file that gives the key, in each line that is known.
  bool is_read_by_all_lines(const std::string& key) const {
    const auto shipped = program_.shipped(key);
    const auto names_config = [&](const diagnose::LaunchWord& word) {
      return std::any_of(shipped.begin(), shipped.end(), [&](const ShippedValue& each) {
        const std::string name = each.file.substr(each.file.rfind('/') + 1);
        return each.place != ShippedValue::Place::command && word.text.ends_with(name);
      });
    };
    const auto& launches = program_.launches();
    return !launches.empty() &&
           std::all_of(launches.begin(), launches.end(), [&](const diagnose::LaunchLine& launch) {
             const auto& words = launch.script_arguments;
             return std::any_of(words.begin(), words.end(), names_config);
           });
  }

  const Program& program_;
  std::string because_;
};

}  // namespace

bool may_read_configs(const Program& program) {
  for (const char* reader : {"yaml", "json", "toml", "tomllib", "hydra", "omegaconf"})
    if (program.imports(reader)) return true;
  const auto& modules = program.modules();
  return std::any_of(modules.begin(), modules.end(), [](const diagnose::Module* module) {
    return module->tree().holds("onfig") || module->tree().holds("cfg");
  });
}

std::optional<Value> value_as_configured(const Program& program, Ref setting) {
  return Configured(program).value_of(setting, 0);
}

std::string passed_by_as_configured(const Program& program, Ref node) {
  Configured configured(program);
  return configured.is_passed_by(node) ? configured.because() : std::string();
}

std::string one_process_as_configured(const Program& program) {
  const auto& launches = program.launches();
  const auto starts_several = [](const diagnose::LaunchLine& launch) {
    return launch.processes_per_node().value_or(2) > 1 || launch.nodes().value_or(1) > 1;
  };
  if (program.framework_distributes() || program.uses(Api::hvd_init) ||
      std::any_of(launches.begin(), launches.end(), starts_several))
    return {};
  const auto spawns = program.calls(Api::spawn);
  if (spawns.empty())
    for (const char* launcher : {"torchrun", "distributed.launch", "distributed.run", "srun"})
      if (speaks_of(program, launcher)) return {};
  std::string why;
  for (const CallRef& start : spawns.empty() ? program.calls(Api::init_process_group) : spawns) {
    why = passed_by_as_configured(program, start.ref());
    if (why.empty()) break;
  }
  return why;
}

std::string one_as_configured(const Program& program, Ref count) {
  Configured configured(program);
  const auto value = configured.value_of(count, 0);
  return value && value->is_integer() && value->integer == 1 ? configured.because() : std::string();
}

}  // namespace bench::pitfalls::facts
