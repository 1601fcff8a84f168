#include "bench/cli/flag_parser.hpp"

#include "bench/core/error.hpp"
#include "bench/core/nearest.hpp"

#include <algorithm>

namespace bench::cli {
namespace {

constexpr std::string_view kNegation = "--no-";

const Flag* find_flag(std::span<const Flag> flags, std::string_view name) {
  for (const Flag& flag : flags) {
    if (flag.name == name) return &flag;
  }
  return nullptr;
}

// "--no-static-graph" names the switch "--static-graph"; "--no-sync" is a switch of its own.
const Flag* find_negated(std::span<const Flag> flags, std::string_view name) {
  if (!name.starts_with(kNegation)) return nullptr;
  const Flag* flag = find_flag(flags, "--" + std::string(name.substr(kNegation.size())));
  return flag != nullptr && flag->placeholder.empty() ? flag : nullptr;
}

[[noreturn]] void unknown_flag(std::span<const Flag> flags, std::string_view name,
                               std::string_view command) {
  std::vector<std::string> known;
  for (const Flag& flag : flags) {
    if (!flag.help.empty()) known.emplace_back(flag.name);
  }
  throw UsageError(std::string(command) + ": " + unknown_name_message("flag", name, known));
}

class Parser {
 public:
  Parser(const Arguments& arguments, std::span<const Flag> flags, std::string_view command,
         std::string_view pass_prefix)
      : arguments_(arguments), flags_(flags), command_(command), pass_prefix_(pass_prefix) {}

  Typed parse() {
    for (; next_ < arguments_.size(); ++next_) {
      const std::string& argument = arguments_[next_];
      if (argument == "--") {
        typed_.rest.assign(arguments_.begin() + static_cast<std::ptrdiff_t>(next_) + 1,
                           arguments_.end());
        break;
      }
      if (!pass_prefix_.empty() && argument.starts_with(pass_prefix_)) {
        typed_.passed.push_back(argument);
      } else if (argument.starts_with("-") && argument.size() > 1) {
        take_flag(argument);
      } else {
        typed_.words.push_back(argument);
      }
    }
    return std::move(typed_);
  }

 private:
  void take_flag(std::string_view argument) {
    const std::size_t equals = argument.find('=');
    const std::string_view name = argument.substr(0, equals);
    std::optional<std::string> inline_value;
    if (equals != std::string_view::npos) inline_value = argument.substr(equals + 1);

    if (const Flag* flag = find_flag(flags_, name)) {
      typed_.flags.push_back({std::string(flag->name), value_of(*flag, inline_value)});
    } else if (const Flag* negated = find_negated(flags_, name); negated && !inline_value) {
      typed_.flags.push_back({std::string(negated->name), "false"});
    } else {
      unknown_flag(flags_, name, command_);
    }
  }

  std::string value_of(const Flag& flag, const std::optional<std::string>& inline_value) {
    if (flag.placeholder.empty()) return inline_value.value_or("true");
    std::optional<std::string> value = inline_value;
    // "-1" is a value of --gpus; a longer word with a dash is the next flag.
    const bool next_is_value =
        next_ + 1 < arguments_.size() && (!arguments_[next_ + 1].starts_with("--"));
    if (!value && next_is_value) value = arguments_[++next_];
    if (!value || value->empty()) {
      throw UsageError(std::string(flag.name) + ": expected a value (" +
                       std::string(flag.placeholder) + ")");
    }
    return *value;
  }

  const Arguments& arguments_;
  std::span<const Flag> flags_;
  std::string_view command_;
  std::string_view pass_prefix_;
  std::size_t next_ = 0;
  Typed typed_;
};

}  // namespace

std::optional<std::string> Typed::value(std::string_view name) const {
  for (auto it = flags.rbegin(); it != flags.rend(); ++it) {
    if (it->name == name) return it->value;
  }
  return std::nullopt;
}

Typed parse_flags(const Arguments& arguments, std::span<const Flag> flags, std::string_view command,
                  std::string_view pass_prefix) {
  return Parser(arguments, flags, command, pass_prefix).parse();
}

std::string choice(const Typed& typed, std::string_view flag, std::vector<std::string> known) {
  std::string value = typed.value(flag).value_or(known.front());
  if (std::find(known.begin(), known.end(), value) == known.end()) {
    throw UsageError(std::string(flag) + ": " + unknown_name_message("value", value, known));
  }
  return value;
}

}  // namespace bench::cli
