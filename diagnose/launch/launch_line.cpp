#include "diagnose/launch/launch_line.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace bench::diagnose {
namespace {

std::optional<std::int64_t> to_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_assignment(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == 0 || equals == std::string_view::npos) return false;
  return std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals),
                     [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_python(std::string_view word) {
  const std::string_view name = base_name(word);
  return name.starts_with("python") || name == "ipython" || name == "$PYTHON" ||
         name == "${PYTHON}" || name == "$(PYTHON)";
}

// Launcher flags that stand alone; every other flag takes the next word when it has no '='.
bool is_switch(std::string_view flag) {
  static constexpr std::string_view kSwitches[] = {"standalone",
                                                   "use-env",
                                                   "no-python",
                                                   "module",
                                                   "m",
                                                   "multi-gpu",
                                                   "cpu",
                                                   "virtual-local-rank",
                                                   "run-path",
                                                   "u",
                                                   "verbose",
                                                   "exclusive",
                                                   "unbuffered",
                                                   "allow-run-as-root",
                                                   "oversubscribe"};
  return std::find(std::begin(kSwitches), std::end(kSwitches), flag) != std::end(kSwitches);
}

// Modules that are launchers themselves, wherever -m names them.
std::optional<Launcher> launcher_module(std::string_view module) {
  if (module == "torch.distributed.launch") return Launcher::launch_module;
  if (module == "torch.distributed.run" || module == "torch.distributed.torchrun")
    return Launcher::torchrun;
  if (module == "accelerate.commands.launch") return Launcher::accelerate;
  return std::nullopt;
}

// The same by their files: python /env/lib/python3.7/site-packages/torch/distributed/launch.py.
std::optional<Launcher> launcher_file(std::string_view path) {
  if (path.ends_with("torch/distributed/launch.py")) return Launcher::launch_module;
  if (path.ends_with("torch/distributed/run.py")) return Launcher::torchrun;
  return std::nullopt;
}

std::string spelt_with_dashes(std::string_view flag) {
  std::string out(flag.substr(std::min(flag.find_first_not_of('-'), flag.size())));
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

// A script that starts its own processes is told of other nodes by its arguments.
bool speaks_of_nodes(const std::vector<LaunchWord>& arguments) {
  static constexpr std::string_view kNames[] = {"nnodes",       "num-nodes",        "nodes",
                                                "n-nodes",      "node-rank",        "num-machines",
                                                "machine-rank", "trainer.num-nodes"};
  bool has_rank = false;
  bool has_size = false;
  for (const LaunchWord& argument : arguments) {
    if (!argument.text.starts_with("-")) continue;
    const std::string name =
        spelt_with_dashes(std::string_view(argument.text).substr(0, argument.text.find('=')));
    if (std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames)) return true;
    has_rank = has_rank || name == "rank";
    has_size = has_size || name == "world-size";
  }
  return has_rank && has_size;
}

class LaunchParser {
 public:
  explicit LaunchParser(const std::vector<LaunchWord>& words) : words_(words) {}

  std::optional<LaunchLine> parse() {
    skip_prefixes();
    skip_profiler();
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

  // nsys profile --output report python train.py: a profiler's own words end at the command.
  void skip_profiler() {
    const std::string_view name = base_name(word());
    if (name != "nsys" && name != "ncu") return;
    std::size_t at = at_ + 1;
    while (at < words_.size() && !is_python(words_[at].text) &&
           base_name(words_[at].text) != "torchrun")
      ++at;
    if (at < words_.size()) at_ = at;
  }

  void skip_prefixes() {
    for (; at_ < words_.size(); ++at_) {
      if (is_assignment(word())) {
        LaunchWord value = words_[at_];
        const std::size_t equals = value.text.find('=');
        const std::string name = value.text.substr(0, equals);
        value.text.erase(0, equals + 1);
        line_.environment[name] = value;
        continue;
      }
      static constexpr std::string_view kPrefixes[] = {"env",  "nohup", "time",
                                                       "exec", "sudo",  "export"};
      if (std::find(std::begin(kPrefixes), std::end(kPrefixes), word()) == std::end(kPrefixes))
        return;
    }
  }

  bool read_launcher() {
    if (at_ >= words_.size()) return false;
    const std::string_view name = base_name(word());
    ++at_;
    if (name == "torchrun") return launcher(Launcher::torchrun);
    if (name == "horovodrun" || name == "mpirun" || name == "mpiexec")
      return launcher(Launcher::horovodrun);
    if (name == "deepspeed") return launcher(Launcher::deepspeed);
    if (name == "srun") return launcher(Launcher::srun);
    if (name == "accelerate" && word() == "launch") {
      ++at_;
      return launcher(Launcher::accelerate);
    }
    if (!is_python(words_[at_ - 1].text)) return false;
    while (word() == "-u" || word() == "-O" || word() == "-W") ++at_;
    if (const auto kind = launcher_file(word())) return ++at_, launcher(*kind);
    if (base_name(word()) == "torchrun")  // python `which torchrun`, python /env/bin/torchrun
      return ++at_, launcher(Launcher::torchrun);
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

  // srun torchrun ... starts torchrun on every node, and that one's flags decide.
  void read_launcher_within_srun() {
    if (line_.launcher != Launcher::srun) return;
    const std::size_t start = at_;
    while (is_assignment(word())) ++at_;
    if (!read_launcher() || line_.launcher == Launcher::python) {
      line_.launcher = Launcher::srun;
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

  void read_flags() {
    while (at_ < words_.size() && word().starts_with("-") && word() != "-") {
      LaunchWord flag = words_[at_++];
      const std::size_t equals = flag.text.find('=');
      std::string name = spelt_with_dashes(std::string_view(flag.text).substr(0, equals));
      LaunchWord value = flag;
      if (equals != std::string::npos) {
        value.text = flag.text.substr(equals + 1);
      } else if (is_switch(name) || at_ >= words_.size()) {
        value.text = "true";
      } else {
        value.text = words_[at_].text;
        value.literal = words_[at_].literal;
        ++at_;
      }
      line_.flags[name] = value;
    }
  }

  bool read_script() {
    // srun and mpirun start python, which starts the script.
    while (at_ < words_.size()) {
      if (is_assignment(word())) {
        ++at_;
      } else if (is_python(word())) {
        ++at_;
        while (word() == "-u" || word() == "-O") ++at_;
        if (word() != "-m") continue;
        ++at_;
        line_.is_module = true;
      } else {
        break;
      }
    }
    if (at_ >= words_.size()) return false;
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

std::string LaunchLine::script_path() const {
  std::string path = script.text;
  if (!is_module || path.ends_with(".py")) return path;
  std::replace(path.begin(), path.end(), '.', '/');
  return path + ".py";
}

std::string LaunchLine::script_name() const {
  const std::string path = script_path();
  return path.substr(path.rfind('/') + 1);
}

std::optional<std::string> LaunchLine::flag(std::string_view name) const {
  const auto found = flags.find(std::string(name));
  if (found == flags.end() || !found->second.literal) return std::nullopt;
  return found->second.text;
}

std::optional<std::int64_t> LaunchLine::integer_flag(std::string_view name) const {
  const auto text = flag(name);
  return text ? to_integer(*text) : std::nullopt;
}

std::optional<std::string> LaunchLine::variable(std::string_view name) const {
  const auto found = environment.find(std::string(name));
  if (found == environment.end() || !found->second.literal) return std::nullopt;
  return found->second.text;
}

std::optional<std::int64_t> LaunchLine::processes_per_node() const {
  for (const char* name : {"nproc-per-node", "num-gpus", "ntasks-per-node", "np", "n"})
    if (const auto count = integer_flag(name)) {
      const bool own = launcher == Launcher::torchrun || launcher == Launcher::launch_module
                           ? std::string_view(name) == "nproc-per-node"
                           : true;
      if (own) return count;
    }
  if (launcher == Launcher::accelerate) {
    const auto count = integer_flag("num-processes");
    const auto machines = integer_flag("num-machines").value_or(1);
    if (count && machines > 0) return *count / machines;
  }
  const bool torch = launcher == Launcher::torchrun || launcher == Launcher::launch_module;
  if (torch && !flags.contains("nproc-per-node")) return 1;
  if (launcher == Launcher::python) return 1;
  return std::nullopt;
}

namespace {

// horovodrun -np 4 -H localhost:4: the list of hosts names this machine only, however many of its
// slots a variable asks for.
bool names_this_host_only(const LaunchLine& line) {
  for (const char* name : {"H", "host", "hosts"})
    if (const auto flag = line.flags.find(name); flag != line.flags.end()) {
      const std::string_view hosts = flag->second.text;
      const std::string_view first = hosts.substr(0, hosts.find(':'));
      return (first == "localhost" || first == "127.0.0.1") &&
             hosts.find(',') == std::string_view::npos;
    }
  return false;
}

// torchrun without an address to meet at: its ranks meet on this machine, whatever number of nodes
// a variable could ask for.
bool meets_on_this_host(const LaunchLine& line) {
  if (line.launcher != Launcher::torchrun && line.launcher != Launcher::launch_module) return false;
  for (const char* name : {"master-addr", "rdzv-endpoint", "rdzv-conf", "rdzv-backend"})
    if (line.flags.contains(name)) return false;
  return line.script.literal && !line.environment.contains("PET_MASTER_ADDR") &&
         !line.environment.contains("PET_RDZV_ENDPOINT");
}

// --gres=gpu:a100:1, --gpus=1 of the batch job that the line stands in.
std::optional<std::int64_t> devices_of_job(const LaunchLine& line) {
  for (const char* name : {"gres", "gpus-per-node", "gpus"}) {
    const auto text = line.flag(name);
    if (!text || text->find(',') != std::string::npos) continue;
    if (*text == "gpu") return 1;
    if (std::string_view(name) == "gres" && !text->starts_with("gpu:")) continue;
    return to_integer(std::string_view(*text).substr(text->rfind(':') + 1));
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> LaunchLine::nodes() const {
  if (launcher == Launcher::python)
    return speaks_of_nodes(script_arguments) ? std::nullopt : std::optional<std::int64_t>(1);
  for (const char* name : {"nnodes", "num-machines", "nodes", "N"})
    if (flags.contains(name)) {
      const auto text = flag(name);
      if (!text) return meets_on_this_host(*this) ? std::optional<std::int64_t>(1) : std::nullopt;
      return to_integer(std::string_view(*text).substr(text->rfind(':') + 1));
    }
  if (launcher == Launcher::horovodrun && names_this_host_only(*this)) return 1;
  // deepspeed without a file of hosts starts processes here; --num_gpus and --include say how many.
  if (launcher == Launcher::deepspeed && !flags.contains("hostfile") && !flags.contains("H")) {
    const auto include = flag("include");
    if (flags.contains("num-gpus") ||
        (include && include->starts_with("localhost:") && include->find('@') == std::string::npos))
      return 1;
  }
  const bool torch = launcher == Launcher::torchrun || launcher == Launcher::launch_module;
  return torch || launcher == Launcher::accelerate ? std::optional<std::int64_t>(1) : std::nullopt;
}

std::optional<std::int64_t> LaunchLine::visible_devices() const {
  const auto text = variable("CUDA_VISIBLE_DEVICES");
  if (!text)
    return launcher == Launcher::python && !environment.contains("CUDA_VISIBLE_DEVICES")
               ? devices_of_job(*this)
               : std::nullopt;
  if (text->find("GPU-") != std::string::npos || text->find("MIG-") != std::string::npos)
    return std::count(text->begin(), text->end(), ',') + 1;
  return static_cast<std::int64_t>(parse_visible_devices(*text).ids.size());
}

namespace {

// Behind what a command substitution takes: $(dirname "$0") or `hostname`; one character else.
std::size_t end_of_substitution(std::string_view line, std::size_t at) {
  if (line[at] == '`') {
    const std::size_t close = line.find('`', at + 1);
    return close == std::string_view::npos ? at + 1 : close + 1;
  }
  if (at + 1 >= line.size() || line[at + 1] != '(') return at + 1;
  int open = 0;
  for (std::size_t i = at + 1; i < line.size(); ++i) {
    if (line[i] == '(') ++open;
    if (line[i] == ')' && --open == 0) return i + 1;
  }
  return at + 1;
}

}  // namespace

std::vector<LaunchWord> split_words(std::string_view line, std::uint32_t line_number) {
  std::vector<LaunchWord> words;
  LaunchWord current;
  bool open = false;
  char quote = 0;
  const auto close = [&] {
    if (open) words.push_back(std::move(current));
    current = {};
    open = false;
  };
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote == 0 && (c == ' ' || c == '\t' || c == '\n' || c == '\r')) {
      close();
      continue;
    }
    if (quote == 0 && !open && c == '#') break;
    if (!open) {
      current.line = line_number;
      current.column = static_cast<std::uint32_t>(i) + 1;
      open = true;
    }
    if (quote != 0) {
      if (c == quote) {
        quote = 0;
        continue;
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
      continue;
    }
    if (c == '\\' && quote != '\'' && i + 1 < line.size()) {
      current.text += line[++i];
      continue;
    }
    if ((c == '$' || c == '`') && quote != '\'') {
      current.literal = false;
      const std::size_t end = end_of_substitution(line, i);
      current.text += line.substr(i, end - i);
      i = end - 1;
      continue;
    }
    current.text += c;
  }
  close();
  return words;
}

std::optional<LaunchLine> parse_launch(const std::vector<LaunchWord>& words) {
  return LaunchParser(words).parse();
}

std::optional<LaunchLine> parse_launch(std::string_view line) {
  return parse_launch(split_words(line));
}

VisibleDevices parse_visible_devices(std::string_view text) {
  VisibleDevices out;
  if (text.empty()) return out;
  std::size_t start = 0;
  while (start <= text.size()) {
    const std::size_t comma = std::min(text.find(',', start), text.size());
    std::string_view entry = text.substr(start, comma - start);
    while (!entry.empty() && entry.front() == ' ') entry.remove_prefix(1);
    while (!entry.empty() && entry.back() == ' ') entry.remove_suffix(1);
    const auto id = to_integer(entry);
    // "0,1," ends where nothing is left to say.
    if (entry.empty() && comma == text.size() && !out.ids.empty()) return out;
    if (!id || *id < 0) {
      // CUDA ignores this entry and all after it; -1 alone is the usual way to hide every GPU.
      const bool hides_all = out.ids.empty() && comma == text.size();
      if (!hides_all)
        out.problem = "the list ends at '" + std::string(entry) + "', which is no device index";
      else if (!id && entry != "none" && entry != "NoDevFiles")
        out.problem = "'" + std::string(entry) + "' is no device index, so no GPU is visible";
      if (const auto prefix = to_integer(entry.substr(0, entry.find(' ')));
          prefix && *prefix >= 0 && entry.find(' ') != std::string_view::npos) {
        out.ids.push_back(static_cast<int>(*prefix));
        out.problem =
            "entries are separated by commas; only GPU " + std::to_string(*prefix) + " is visible";
      }
      return out;
    }
    if (std::find(out.ids.begin(), out.ids.end(), static_cast<int>(*id)) != out.ids.end()) {
      out.problem = "GPU " + std::to_string(*id) + " is listed twice, so no GPU is visible";
      out.ids.clear();
      return out;
    }
    out.ids.push_back(static_cast<int>(*id));
    start = comma + 1;
  }
  return out;
}

}  // namespace bench::diagnose
