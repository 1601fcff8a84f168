#include "diagnose/launch/command_wrappers.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>

namespace bench::diagnose {
namespace {

struct Wrapper {
  std::string_view name;
  std::string_view subcommand = "";  // that makes it one
};

// What they take themselves (options, an image, a host) ends where a launch line begins.
constexpr Wrapper kWrappers[] = {
    {"apptainer", "exec"},
    {"apptainer", "run"},
    {"caffeinate"},
    {"ch-run"},
    {"command"},
    {"conda", "run"},
    {"docker", "compose"},
    {"docker", "exec"},
    {"docker", "run"},
    {"docker-compose"},
    {"dlprof"},
    {"enroot", "start"},
    {"env"},
    {"exec"},
    {"hatch", "run"},
    {"ionice"},
    {"kubectl", "exec"},
    {"mamba", "run"},
    {"micromamba", "run"},
    {"ncu"},
    {"nice"},
    {"nohup"},
    {"nsys"},
    {"numactl"},
    {"nvidia-docker"},
    {"pdm", "run"},
    {"pipenv", "run"},
    {"pixi", "run"},
    {"podman", "exec"},
    {"podman", "run"},
    {"poetry", "run"},
    {"proxychains"},
    {"proxychains4"},
    {"rye", "run"},
    {"screen"},
    {"setsid"},
    {"shifter"},
    {"singularity", "exec"},
    {"singularity", "run"},
    {"ssh"},
    {"sshpass"},
    {"stdbuf"},
    {"sudo"},
    {"taskset"},
    {"time"},
    {"timeout"},
    {"tmux"},
    {"unbuffer"},
    {"uv", "run"},
    {"xvfb-run"},
};

const std::string& text_at(const std::vector<LaunchWord>& words, std::size_t at) {
  static const std::string kNone;
  return at < words.size() ? words[at].text : kNone;
}

const Wrapper* wrapper_at(const std::vector<LaunchWord>& words, std::size_t at) {
  const std::string_view name = base_name(text_at(words, at));
  for (const Wrapper& each : kWrappers)
    if (each.name == name && (each.subcommand.empty() || each.subcommand == text_at(words, at + 1)))
      return &each;
  return nullptr;
}

bool is_shell(std::string_view word) {
  const std::string_view name = base_name(word);
  return name == "bash" || name == "sh" || name == "zsh" || name == "dash";
}

// -c, -lc
bool takes_command(std::string_view flag) {
  return flag.size() > 1 && flag.size() < 5 && flag.front() == '-' && flag[1] != '-' &&
         flag.ends_with('c');
}

bool is_several_words(std::string_view text) {
  return text.find_first_of(" \t\n") != std::string_view::npos;
}

std::optional<LaunchWord> assignment_value(const LaunchWord& word) {
  if (!is_assignment(word.text)) return std::nullopt;
  LaunchWord value = word;
  const std::size_t name_end = word.text.find('=') + 1;
  value.text.erase(0, name_end);
  value.column += static_cast<std::uint32_t>(name_end);
  return value;
}

void take_variable(const LaunchWord& word, WrapperWords& out) {
  if (auto value = assignment_value(word))
    out.environment[word.text.substr(0, word.text.find('='))] = std::move(*value);
}

// From a wrapper's name to what it starts; the same place where nothing known follows.
std::size_t behind_wrapper(const std::vector<LaunchWord>& words, std::size_t at,
                           WrapperWords& out) {
  const std::string_view name = base_name(words[at].text);
  const bool has_image = name != "env" && name != "sudo";
  for (std::size_t i = at + 1; i < words.size(); ++i) {
    const std::string& text = words[i].text;
    if (begins_launch(text) || wrapper_at(words, i) != nullptr) return i;
    if (is_assignment(text)) {
      const std::string& before = text_at(words, i - 1);
      if (!has_image || before == "-e" || before == "--env") take_variable(words[i], out);
    }
  }
  // env A=1 ./run.sh, nohup bash run.sh: whatever stands there is the command.
  return name == "env" || name == "nohup" || name == "exec" || name == "time" || name == "sudo"
             ? at + 1
             : at;
}

std::optional<NestedCommand> nested_at(const std::vector<LaunchWord>& words, std::size_t at) {
  const std::string_view name = base_name(words[at].text);
  if (is_shell(name) && takes_command(text_at(words, at + 1)) && at + 2 < words.size())
    return NestedCommand{at, words[at + 2]};
  if (name == "eval" && at + 1 < words.size()) {
    NestedCommand out{at, words[at + 1]};
    for (std::size_t i = at + 2; i < words.size(); ++i) {
      out.text.text += ' ' + words[i].text;
      out.text.literal = out.text.literal && words[i].literal;
    }
    return out;
  }
  // ssh host "cd x && torchrun ...", tmux send-keys -t 0 "torchrun ..." C-m
  const bool runs_text = name == "ssh" || name == "tmux" || name == "screen" || name == "sbatch";
  for (std::size_t i = at + 1; runs_text && i < words.size(); ++i) {
    if (!words[i].quoted || !is_several_words(words[i].text)) continue;
    NestedCommand out{name == "sbatch" ? at : i, words[i]};
    constexpr std::string_view kWrap = "--wrap=";
    if (out.text.text.starts_with(kWrap)) out.text.text.erase(0, kWrap.size());
    return out;
  }
  return std::nullopt;
}

}  // namespace

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_python(std::string_view word) {
  if (word == "$PYTHON" || word == "${PYTHON}" || word == "$(PYTHON)") return true;
  std::string_view name = base_name(word);
  if (name == "ipython") return true;
  constexpr std::string_view kPython = "python";
  if (!name.starts_with(kPython)) return false;
  name.remove_prefix(kPython.size());
  return std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isdigit(c) || c == '.' || c == 'w'; });
}

bool begins_launch(std::string_view word) {
  static constexpr std::string_view kNames[] = {"accelerate", "deepspeed", "horovodrun", "mpiexec",
                                                "mpirun",     "srun",      "torchrun"};
  const std::string_view name = base_name(word);
  return is_python(word) ||
         std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

WrapperWords read_wrappers(const std::vector<LaunchWord>& words, std::size_t at) {
  WrapperWords out;
  while (at < words.size()) {
    if (is_assignment(words[at].text)) {
      take_variable(words[at++], out);
      continue;
    }
    if (words[at].text == "export") {
      ++at;
      continue;
    }
    if (wrapper_at(words, at) == nullptr) break;
    const std::size_t next = behind_wrapper(words, at, out);
    if (next == at) break;
    const std::string_view name = base_name(words[at].text);
    out.is_elsewhere = out.is_elsewhere || name == "ssh";
    at = next;
  }
  out.end = at;
  return out;
}

std::optional<NestedCommand> nested_command(const std::vector<LaunchWord>& words) {
  std::size_t at = 0;
  while (at < words.size() && is_assignment(words[at].text)) ++at;
  if (at >= words.size()) return std::nullopt;
  if (auto nested = nested_at(words, at)) return nested;
  // srun -N 2 singularity exec image bash -c "..."
  const std::string_view name = base_name(words[at].text);
  if (wrapper_at(words, at) == nullptr && name != "srun" && name != "mpirun" && name != "mpiexec")
    return std::nullopt;
  for (std::size_t i = at + 1; i < words.size(); ++i) {
    if (is_python(words[i].text)) return std::nullopt;
    if (!is_shell(words[i].text) && words[i].text != "eval") continue;
    if (auto nested = nested_at(words, i)) return nested;
  }
  return std::nullopt;
}

}  // namespace bench::diagnose
