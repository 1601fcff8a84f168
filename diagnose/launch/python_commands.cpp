#include "diagnose/launch/python_commands.hpp"

#include "diagnose/launch/command_wrappers.hpp"
#include "diagnose/launch/shell_script.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>
#include <utility>

namespace bench::diagnose {
namespace {

constexpr std::size_t kLongestCommand = 8000;

}  // namespace

bool may_hold_commands(std::string_view text) {
  constexpr std::string_view kWords[] = {"torchrun",  "torch.distributed.", "accelerate",
                                         "deepspeed", "horovodrun",         "mpirun"};
  const auto has = [&](std::string_view word) { return text.find(word) != std::string_view::npos; };
  return std::any_of(std::begin(kWords), std::end(kWords), has);
}

namespace {

struct Literal {
  std::string text;
  std::size_t end = 0;  // behind it
  bool is_literal = true;
};

// The string whose quote stands at `at`; one of three quotes counts as prose.
std::optional<Literal> string_at(std::string_view text, std::size_t at) {
  const char quote = text[at];
  if (text.substr(at, 3) == std::string(3, quote)) return std::nullopt;
  const bool is_formatted = at > 0 && (text[at - 1] == 'f' || text[at - 1] == 'F');
  Literal out;
  for (std::size_t i = at + 1; i < text.size() && text[i] != '\n'; ++i) {
    if (text[i] == quote) {
      out.end = i + 1;
      return out;
    }
    if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] != '\n') ++i;
    if (is_formatted && text[i] == '{') {
      out.text += '$';  // {name} is as little known as $name
      out.is_literal = false;
    }
    out.text += text[i];
  }
  return std::nullopt;
}

std::size_t skip_blanks(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    if (text[at] == '#')
      at = std::min(text.find('\n', at), text.size());
    else if (std::isspace(static_cast<unsigned char>(text[at])) != 0)
      ++at;
    else
      break;
  }
  return at;
}

// Behind an expression in a list: at its comma or the closing bracket.
std::size_t end_of_item(std::string_view text, std::size_t at) {
  int open = 0;
  const std::size_t end = std::min(text.size(), at + kLongestCommand);
  while (at < end) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      const auto string = string_at(text, at);
      if (!string) return end;
      at = string->end;
      continue;
    }
    if (c == '(' || c == '[' || c == '{') ++open;
    if (open == 0 && (c == ',' || c == ']')) return at;
    if (c == ')' || c == ']' || c == '}') --open;
    if (open < 0) return end;
    ++at;
  }
  return end;
}

// A list that may be a command: its first item is a launcher's name or the interpreter.
bool may_be_command(std::string_view text, std::size_t at) {
  const std::size_t first = skip_blanks(text, at + 1);
  if (first >= text.size()) return false;
  if (text[first] != '"' && text[first] != '\'')
    return text.substr(first).starts_with("sys.executable");
  const auto string = string_at(text, first);
  return string && begins_launch(string->text);
}

// ["torchrun", "--nproc_per_node", str(n), "train.py"] at its bracket.
std::vector<LaunchWord> words_of_list(std::string_view text, std::size_t at) {
  std::vector<LaunchWord> out;
  const std::size_t end = std::min(text.size(), at + kLongestCommand);
  for (at = skip_blanks(text, at + 1); at < end && text[at] != ']';) {
    const std::size_t item_end = end_of_item(text, at);
    std::string_view item = text.substr(at, item_end - at);
    while (!item.empty() && std::isspace(static_cast<unsigned char>(item.back())) != 0)
      item.remove_suffix(1);
    const std::size_t quote = item.starts_with('f') ? 1 : 0;
    LaunchWord word;
    word.text = "$value";
    word.literal = false;
    if (item == "sys.executable") {
      word.text = "python";
      word.literal = true;
    } else if (item.size() > quote + 1 && (item[quote] == '"' || item[quote] == '\'')) {
      const auto string = string_at(text, at + quote);
      if (!string) return {};
      if (string->end == at + item.size()) {
        word.text = string->text;
        word.literal = string->is_literal;
      }
    }
    out.push_back(std::move(word));
    at = item_end < end && text[item_end] == ',' ? skip_blanks(text, item_end + 1) : item_end;
    if (item_end >= end) return {};
  }
  return out;
}

// Also print("   torchrun train.py"), a usage text that is shown.
bool begins_command(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(" \t"));
  return word.size() < text.size() && (begins_launch(word) || is_assignment(word) || word == "cd");
}

bool starts_several(const LaunchLine& launch) {
  return launch.launcher != Launcher::python && launch.launcher != Launcher::srun &&
         launch.script_path().ends_with(".py");
}

}  // namespace

std::vector<LaunchLine> commands_in_python(const std::string& file, std::string_view text) {
  std::vector<LaunchLine> out;
  if (!may_hold_commands(text)) return out;
  const auto keep = [&](LaunchLine launch) {
    launch.file = file;
    if (starts_several(launch)) out.push_back(std::move(launch));
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '#') {
      at = std::min(text.find('\n', at), text.size());
    } else if (text[at] == '[' && may_be_command(text, at)) {
      const auto words = words_of_list(text, at);
      if (auto launch = parse_launch(words)) keep(std::move(*launch));
    } else if (text[at] == '"' || text[at] == '\'') {
      const auto string = string_at(text, at);
      if (!string) {
        const std::string three(3, text[at]);
        const bool is_long = text.substr(at, 3) == three;
        const std::size_t close = is_long ? text.find(three, at + 3) : text.find('\n', at);
        at = close == std::string_view::npos ? text.size() : close + (is_long ? 2 : 0);
        continue;
      }
      at = string->end - 1;
      if (!begins_command(string->text)) continue;
      for (LaunchLine& launch : read_shell_script(file, string->text)) keep(std::move(launch));
    }
  }
  return out;
}

}  // namespace bench::diagnose
