#include "diagnose/driver/accelerate_config.hpp"

#include "diagnose/config/config_entry.hpp"
#include "diagnose/driver/assemble.hpp"
#include "diagnose/driver/directory.hpp"

#include <filesystem>
#include <optional>
#include <vector>

namespace bench::diagnose {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxConfigBytes = 64U << 10;

// The file as the shell would find it from the folder of the line, or from one above, where the
// project is started from as a rule.
std::optional<std::string> text_of(const LaunchLine& launch, const std::string& path,
                                   const std::string& root, const ModuleCache& cache) {
  if (path.starts_with('/') || path.starts_with('~')) return std::nullopt;
  std::vector<std::string> folders = directories_above(launch.file, root);
  if (!launch.folder.empty()) folders.insert(folders.begin(), launch.folder + '/');
  for (const std::string& folder : folders) {
    const std::string named = (fs::path(folder) / path).lexically_normal().string();
    const bool is_inside = root.empty() ? !named.starts_with("..") : named.starts_with(root);
    if (!is_inside || links_out_of(named, root)) continue;
    auto text = cache.read(named);
    if (text && text->size() <= kMaxConfigBytes) return text;
  }
  return std::nullopt;
}

}  // namespace

void read_accelerate_config(LaunchLine& launch, const std::string& root, const ModuleCache& cache) {
  if (launch.launcher != Launcher::accelerate) return;
  const auto flag = launch.flags.find("config-file");
  if (flag == launch.flags.end() || !flag->second.literal) return;
  const auto text = text_of(launch, flag->second.text, root, cache);
  if (!text) return;
  const LaunchWord word = flag->second;
  for (const ConfigEntry& entry : read_yaml(word.text, *text)) {
    if (entry.path == "distributed_type" && entry.value.is_string() &&
        entry.value.string == "DEEPSPEED")
      launch.flags.try_emplace("use-deepspeed", word);
    if (entry.path != "num_processes" && entry.path != "num_machines") continue;
    if (!entry.value.is_integer()) continue;
    LaunchWord count = word;
    count.text = std::to_string(entry.value.integer);
    launch.flags.try_emplace(spelt_with_dashes(entry.path), std::move(count));
  }
}

}  // namespace bench::diagnose
