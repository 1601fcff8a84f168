#include "diagnose/launch/launch_line.hpp"

#include "diagnose/launch/slurm_job.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace bench::diagnose {
namespace {

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

}  // namespace

std::optional<std::int64_t> to_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string spelt_with_dashes(std::string_view flag) {
  std::string out(flag.substr(std::min(flag.find_first_not_of('-'), flag.size())));
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

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
  // deepspeed --include localhost:0,1: a process for each GPU that is listed.
  if (const auto include = launcher == Launcher::deepspeed ? flag("include") : std::nullopt;
      include && include->starts_with("localhost:") && include->find('@') == std::string::npos)
    return std::count(include->begin(), include->end(), ',') + 1;
  const bool torch = launcher == Launcher::torchrun || launcher == Launcher::launch_module;
  if (torch && !flags.contains("nproc-per-node") && !has_unknown_flags) return 1;
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
  if (has_unknown_flags) return std::nullopt;
  return torch || launcher == Launcher::accelerate ? std::optional<std::int64_t>(1) : std::nullopt;
}

std::optional<std::int64_t> LaunchLine::visible_devices() const {
  const auto text = variable("CUDA_VISIBLE_DEVICES");
  if (!text)
    return launcher == Launcher::python && !environment.contains("CUDA_VISIBLE_DEVICES")
               ? gpus_of_job(flags)
               : std::nullopt;
  if (text->find("GPU-") != std::string::npos || text->find("MIG-") != std::string::npos)
    return std::count(text->begin(), text->end(), ',') + 1;
  return static_cast<std::int64_t>(parse_visible_devices(*text).ids.size());
}

std::string LaunchLine::port() const {
  for (const char* name : {"master-port", "main-process-port"})
    if (flags.contains(name)) {
      const auto given = flag(name);
      return given && *given != "0" ? *given : std::string();
    }
  const bool torch = launcher == Launcher::torchrun || launcher == Launcher::launch_module;
  if (!torch || has_unknown_flags || environment.contains("PET_MASTER_PORT")) return {};
  for (const char* name : {"standalone", "rdzv-backend", "rdzv-endpoint", "rdzv-conf", "nnodes"})
    if (flags.contains(name)) return {};
  constexpr const char* kDefaultPort = "29500";  // of torch.distributed.run
  return kDefaultPort;
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
