#include "diagnose/launch/slurm_job.hpp"

#include <array>
#include <utility>

namespace bench::diagnose {
namespace {

constexpr auto kShort = std::to_array<std::pair<char, std::string_view>>(
    {{'N', "nodes"}, {'n', "ntasks"}, {'G', "gpus"}, {'c', "cpus-per-task"}});

std::string_view long_name(std::string_view name) {
  for (const auto& [letter, full] : kShort)
    if (name.size() == 1 && name.front() == letter) return full;
  return name;
}

const LaunchWord* option(const JobOptions& options, std::string_view name) {
  const auto found = options.find(std::string(name));
  return found == options.end() || !found->second.literal ? nullptr : &found->second;
}

std::optional<std::int64_t> number(const JobOptions& options, std::string_view name) {
  const LaunchWord* word = option(options, name);
  return word == nullptr ? std::nullopt : to_integer(word->text);
}

// gpu:a100:4, a100:4, 4
std::optional<std::int64_t> count_of_devices(std::string_view text, bool is_resource) {
  if (text.find(',') != std::string_view::npos) return std::nullopt;
  if (is_resource && text == "gpu") return 1;
  if (is_resource && !text.starts_with("gpu:")) return std::nullopt;
  return to_integer(text.substr(text.rfind(':') + 1));
}

}  // namespace

void note_batch_options(const LaunchWord& line, JobOptions& options) {
  constexpr std::uint32_t kMarker = 7;  // #SBATCH
  const auto words = split_words(line.text, line.line);
  for (std::size_t i = 0; i < words.size(); ++i) {
    LaunchWord word = words[i];
    const bool is_long = word.text.starts_with("--");
    if (!is_long && (word.text.size() < 2 || word.text.front() != '-')) continue;
    const std::size_t begin = is_long ? 2 : 1;
    const std::size_t equals = word.text.find('=');
    std::string name = word.text.substr(begin, equals - std::min(equals, begin));
    if (!is_long) name = word.text.substr(1, 1);
    if (!is_long && word.text.size() > 2) {
      word.text.erase(0, word.text[2] == '=' ? 3 : 2);  // -N2
    } else if (is_long && equals != std::string::npos) {
      word.text.erase(0, equals + 1);
    } else if (i + 1 < words.size() && !words[i + 1].text.starts_with("-")) {
      word = words[++i];  // --gres gpu:1
    }
    word.column += kMarker;
    options[std::string(long_name(name))] = word;
  }
}

JobOptions job_options(const std::map<std::string, LaunchWord>& flags) {
  JobOptions out;
  for (const auto& [name, value] : flags) out[std::string(long_name(name))] = value;
  return out;
}

std::optional<LaunchWord> slurm_variable(const JobOptions& options, std::string_view name) {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, std::string_view>>(
      {{"SLURM_NNODES", "nodes"},
       {"SLURM_JOB_NUM_NODES", "nodes"},
       {"SLURM_NTASKS", "ntasks"},
       {"SLURM_NPROCS", "ntasks"},
       {"SLURM_NTASKS_PER_NODE", "ntasks-per-node"},
       {"SLURM_CPUS_PER_TASK", "cpus-per-task"}});
  for (const auto& [variable, key] : kNames) {
    if (variable != name) continue;
    const LaunchWord* word = option(options, key);
    if (word == nullptr || !to_integer(word->text)) return std::nullopt;
    return *word;
  }
  if (name != "SLURM_GPUS_ON_NODE" && name != "SLURM_GPUS_PER_NODE") return std::nullopt;
  const auto gpus = gpus_of_job(options);
  if (!gpus) return std::nullopt;
  LaunchWord out;
  out.text = std::to_string(*gpus);
  return out;
}

std::optional<std::int64_t> gpus_of_job(const JobOptions& options) {
  for (const std::string_view name : {"gres", "gpus-per-node", "gpus"}) {
    const LaunchWord* word = option(options, name);
    if (word == nullptr) continue;
    if (name == "gpus" && number(options, "nodes").value_or(1) != 1) return std::nullopt;
    if (const auto count = count_of_devices(word->text, name == "gres")) return count;
  }
  return std::nullopt;
}

std::optional<std::int64_t> tasks_per_node(const JobOptions& options) {
  if (options.contains("ntasks-per-node") && !options.contains("ntasks"))
    return number(options, "ntasks-per-node");
  const auto tasks = number(options, "ntasks");
  const auto nodes = number(options, "nodes");
  if (!tasks || !nodes || *nodes < 1 || *tasks % *nodes != 0) return std::nullopt;
  return *tasks / *nodes;
}

}  // namespace bench::diagnose
