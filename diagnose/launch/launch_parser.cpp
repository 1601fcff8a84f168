// One command taken apart: what stands in front of the launcher, the launcher with its flags, and
// the script with its arguments.
#include "diagnose/launch/command_wrappers.hpp"
#include "diagnose/launch/launch_line.hpp"
#include "diagnose/launch/slurm_job.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

namespace bench::diagnose {
namespace {

// Launcher flags that stand alone; every other flag takes the next word when it has no '='.
bool is_switch(std::string_view flag) {
  static constexpr std::string_view kSwitches[] = {"standalone",
                                                   "use-env",
                                                   "no-python",
                                                   "module",
                                                   "m",
                                                   "multi-gpu",
                                                   "cpu",
                                                   "run-path",
                                                   "virtual-local-rank",
                                                   "u",
                                                   "verbose",
                                                   "exclusive",
                                                   "unbuffered",
                                                   "allow-run-as-root",
                                                   "oversubscribe",
                                                   "use-deepspeed",
                                                   "use-fsdp",
                                                   "debug",
                                                   "same-network",
                                                   "label",
                                                   "overlap",
                                                   "pty",
                                                   "exact",
                                                   "force-multi",
                                                   "no-ssh"};
  return std::find(std::begin(kSwitches), std::end(kSwitches), flag) != std::end(kSwitches);
}

// What stands behind a flag is no value of it: another flag, a command, or the script.
bool is_no_value(const LaunchWord& word) {
  const bool is_flag = word.text.size() > 1 && word.text.front() == '-' &&
                       std::isdigit(static_cast<unsigned char>(word.text[1])) == 0;
  return is_flag || word.text.ends_with(".py") || (word.literal && begins_launch(word.text));
}

// Modules that are launchers themselves, wherever -m names them.
std::optional<Launcher> launcher_module(std::string_view module) {
  if (module == "torch.distributed.launch") return Launcher::launch_module;
  if (module == "torch.distributed.run" || module == "torch.distributed.torchrun")
    return Launcher::torchrun;
  if (module == "accelerate.commands.launch") return Launcher::accelerate;
  if (module == "deepspeed.launcher.runner") return Launcher::deepspeed;
  return std::nullopt;
}

// The same by their files: python /env/lib/python3.7/site-packages/torch/distributed/launch.py.
std::optional<Launcher> launcher_file(std::string_view path) {
  if (path.ends_with("torch/distributed/launch.py")) return Launcher::launch_module;
  if (path.ends_with("torch/distributed/run.py")) return Launcher::torchrun;
  return std::nullopt;
}

// `which torchrun`, $(command -v torchrun): the name that is looked for.
std::string_view looked_for(std::string_view text) {
  const bool is_substitution = text.starts_with('`') || text.starts_with("$(");
  if (!is_substitution || text.size() < 3) return text;
  std::string_view inner = text.substr(text[0] == '`' ? 1 : 2);
  inner.remove_suffix(1);
  for (const std::string_view finder : {"which ", "command -v ", "type -p "})
    if (inner.starts_with(finder)) return inner.substr(finder.size());
  return text;
}

class LaunchParser {
 public:
  explicit LaunchParser(const std::vector<LaunchWord>& words) : words_(words) {}

  std::optional<LaunchLine> parse() {
    skip_wrappers();
    if (at_ >= words_.size()) return std::nullopt;
    line_.command = words_[at_];
    if (!read_launcher()) return std::nullopt;
    if (line_.launcher != Launcher::python) read_flags();
    read_launcher_within_srun();
    read_launcher_as_module();
    if (!read_script()) return std::nullopt;
    for (; at_ < words_.size(); ++at_) line_.script_arguments.push_back(words_[at_]);
    if (line_.launcher == Launcher::launch_module && line_.flags.contains("use-env"))
      line_.launcher = Launcher::torchrun;
    return line_;
  }

 private:
  std::string_view word() const {
    return at_ < words_.size() ? std::string_view(words_[at_].text) : std::string_view{};
  }

  void skip_wrappers() {
    WrapperWords wrappers = read_wrappers(words_, at_);
    at_ = wrappers.end;
    line_.is_elsewhere = line_.is_elsewhere || wrappers.is_elsewhere;
    for (auto& [name, value] : wrappers.environment) line_.environment[name] = std::move(value);
  }

  // -u, -W ignore: options of Python itself, up to -m.
  void skip_python_options() {
    while (word().starts_with("-") && word() != "-m" && word() != "-c" && word() != "-")
      at_ += word() == "-W" || word() == "-X" ? 2 : 1;
    at_ = std::min(at_, words_.size());
  }

  bool read_launcher_by_name(std::string_view name) {
    if (name == "torchrun") return launcher(Launcher::torchrun);
    if (name == "horovodrun" || name == "mpirun" || name == "mpiexec")
      return launcher(Launcher::horovodrun);
    if (name == "deepspeed") return launcher(Launcher::deepspeed);
    if (name == "srun") return launcher(Launcher::srun);
    if (name != "accelerate" || word() != "launch") return false;
    ++at_;
    return launcher(Launcher::accelerate);
  }

  bool read_launcher() {
    if (at_ >= words_.size()) return false;
    const std::string_view named = looked_for(word());
    ++at_;
    if (read_launcher_by_name(base_name(named))) return true;
    if (!is_python(named)) return false;
    skip_python_options();
    // python `which torchrun` ...
    const std::size_t start = at_++;
    if (start < words_.size() && read_launcher_by_name(base_name(looked_for(words_[start].text))))
      return true;
    at_ = start;
    if (const auto kind = launcher_file(word())) return ++at_, launcher(*kind);
    if (word() != "-m") return launcher(Launcher::python);
    ++at_;
    if (const auto kind = launcher_module(word())) return ++at_, launcher(*kind);
    line_.is_module = true;
    return launcher(Launcher::python);  // python -m package.train
  }

  // torchrun -m torch.distributed.launch ...: the launcher that is started last starts the ranks.
  void read_launcher_as_module() {
    if (!line_.flags.contains("m") && !line_.flags.contains("module")) return;
    const auto kind = launcher_module(word());
    if (!kind) return;
    ++at_;
    line_.launcher = *kind;
    line_.flags.clear();
    read_flags();
  }

  // srun torchrun ... starts torchrun in every task, and that one's flags decide.
  void read_launcher_within_srun() {
    if (line_.launcher != Launcher::srun) return;
    line_.is_job_step = true;
    line_.job = job_options(line_.flags);
    skip_wrappers();
    const std::size_t start = at_;
    if (!read_launcher() || line_.launcher == Launcher::python) {
      line_.launcher = Launcher::srun;
      line_.is_module = false;
      at_ = start;
      return;
    }
    line_.command = words_[start];
    line_.flags.clear();
    read_flags();
  }

  bool launcher(Launcher kind) {
    line_.launcher = kind;
    return true;
  }

  // $FLAGS between the flags, or in front of the script: what it holds is not known.
  bool skip_unknown_flags() {
    if (at_ + 1 >= words_.size() || words_[at_].literal || !word().starts_with('$')) return false;
    if (word().find('/') != std::string_view::npos || word().ends_with(".py")) return false;
    const std::string& next = words_[at_ + 1].text;
    const bool more = next.starts_with('-') || next.starts_with('$');
    if (!next.ends_with(".py") && next != "-m" &&
        !(more && is_called_flags(word()) && leads_to_script()))
      return false;
    line_.has_unknown_flags = true;
    ++at_;
    return true;
  }

  // $DISTRIBUTED_ARGS, ${LAUNCH_OPTS[@]}
  static bool is_called_flags(std::string_view name) {
    std::string lower(name);
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    constexpr std::string_view kParts[] = {"arg", "opt", "flag", "dist", "launch", "torchrun"};
    return std::any_of(std::begin(kParts), std::end(kParts), [&](std::string_view part) {
      return lower.find(part) != std::string::npos;
    });
  }

  // A script further on, so that flags which come first are the launcher's.
  bool leads_to_script() const {
    return std::any_of(words_.begin() + static_cast<std::ptrdiff_t>(at_) + 1, words_.end(),
                       [](const LaunchWord& each) { return each.text.ends_with(".py"); });
  }

  void read_flags() {
    while (skip_unknown_flags() ||
           (at_ < words_.size() && word().starts_with("-") && word() != "-")) {
      if (!word().starts_with("-")) continue;
      LaunchWord flag = words_[at_++];
      const std::size_t equals = flag.text.find('=');
      std::string name = spelt_with_dashes(std::string_view(flag.text).substr(0, equals));
      LaunchWord value = flag;
      if (equals != std::string::npos) {
        value.text = flag.text.substr(equals + 1);
        value.column += static_cast<std::uint32_t>(equals) + 1;
      } else if (is_switch(name) || at_ >= words_.size() || is_no_value(words_[at_])) {
        value.text = "true";
      } else {
        value = words_[at_];
        ++at_;
      }
      line_.flags[name] = value;
    }
  }

  bool read_script() {
    skip_wrappers();
    // srun and mpirun start python, which starts the script.
    while (at_ < words_.size()) {
      if (is_assignment(word())) {
        ++at_;
      } else if (is_python(word())) {
        ++at_;
        skip_python_options();
        if (word() != "-m") continue;
        ++at_;
        line_.is_module = true;
      } else {
        break;
      }
    }
    if (at_ >= words_.size() || word() == "-c") return false;
    line_.script = words_[at_++];
    line_.is_module =
        line_.is_module || line_.flags.contains("m") || line_.flags.contains("module");
    const std::string_view script = line_.script.text;
    return script.ends_with(".py") || script.ends_with(".sh") || line_.launcher != Launcher::srun ||
           line_.is_module;
  }

  const std::vector<LaunchWord>& words_;
  std::size_t at_ = 0;
  LaunchLine line_;
};

}  // namespace

std::optional<LaunchLine> parse_launch(const std::vector<LaunchWord>& words) {
  return LaunchParser(words).parse();
}

std::optional<LaunchLine> parse_launch(std::string_view line) {
  return parse_launch(split_words(line));
}

}  // namespace bench::diagnose
