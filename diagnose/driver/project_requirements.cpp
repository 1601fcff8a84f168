#include "diagnose/driver/project_requirements.hpp"

#include "diagnose/config/readme_versions.hpp"
#include "diagnose/driver/assemble.hpp"
#include "diagnose/launch/launch_documents.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace bench::diagnose {
namespace {

// Files of one directory that are read for install commands.
constexpr int kMaxInstallFiles = 16;

// clang-format off
constexpr auto kRequirementFiles = std::to_array<std::string_view>({
    "Dockerfile", "Pipfile", "conda.yaml", "conda.yml", "conda_env.yaml", "conda_env.yml",
    "env.yaml", "env.yml", "environment.yaml", "environment.yml", "pyproject.toml",
    "pytorch_env.yaml", "pytorch_env.yml", "requirement.txt", "requirements.in",
    "requirements.txt", "setup.cfg", "setup.py"});
// clang-format on

constexpr auto kLockFiles =
    std::to_array<std::string_view>({"Pipfile.lock", "pdm.lock", "poetry.lock", "uv.lock"});

using ReadVersions = NewestVersions (*)(std::string_view);

ReadVersions reader_of(std::string_view name) {
  if (std::binary_search(kRequirementFiles.begin(), kRequirementFiles.end(), name))
    return read_requirements;
  if (std::binary_search(kLockFiles.begin(), kLockFiles.end(), name)) return read_lock;
  if (name == ".python-version") return read_python_version;
  return nullptr;
}

// Install commands, and versions that the text names: "PyTorch 1.9.0".
NewestVersions read_whole_readme(std::string_view text) {
  return merged(read_installs(text), read_readme(text));
}

ReadVersions installs_of(std::string_view name) {
  switch (launch_document(name)) {
    case LaunchDocument::readme:
      return read_whole_readme;
    case LaunchDocument::shell:
    case LaunchDocument::makefile:
    case LaunchDocument::dockerfile:
      return read_installs;
    default:
      return nullptr;
  }
}

// What the files of one directory say.
struct Bounds {
  NewestVersions declared;
  NewestVersions installed;
};

Bounds bounds_in(const std::string& directory, const std::string& top, const ModuleCache& cache,
                 const std::vector<DirectoryEntry>& entries) {
  Bounds out;
  int left = kMaxInstallFiles;
  for (const DirectoryEntry& entry : entries) {
    if (entry.is_directory) continue;
    const ReadVersions declares = reader_of(entry.name);
    const ReadVersions installs = declares == nullptr ? installs_of(entry.name) : nullptr;
    if (declares == nullptr && (installs == nullptr || left-- <= 0)) continue;
    const std::string file = directory + entry.name;
    if (entry.is_link && links_out_of(file, top)) continue;
    const auto text = cache.read(file);
    if (!text) continue;
    if (declares != nullptr) out.declared = merged(out.declared, declares(*text));
    if (installs != nullptr) out.installed = merged(out.installed, installs(*text));
  }
  return out;
}

// docker/Dockerfile: the folder of an image stands beside what is run in it.
bool holds_image(const DirectoryEntry& entry) {
  constexpr auto kFolders =
      std::to_array<std::string_view>({"docker", "Docker", ".docker", ".devcontainer"});
  return entry.is_directory && !entry.is_link &&
         std::find(kFolders.begin(), kFolders.end(), entry.name) != kFolders.end();
}

}  // namespace

NewestVersions environments_of(const std::vector<LaunchLine>& launches, const ModuleCache& cache) {
  NewestVersions out;
  for (const LaunchLine& launch : launches) {
    const ReadVersions installs = installs_of(launch.file);
    const auto text = installs == nullptr ? std::nullopt : cache.read(launch.file);
    if (!text) return {};
    NewestVersions here = read_installs(*text);
    if (here.python == kAnyVersion && here.torch == kAnyVersion) return {};
    out = merged(out, here);
  }
  return out;
}

NewestVersions requirements_in(const std::string& directory, const std::string& top,
                               const ModuleCache& cache, const Lister& list) {
  const auto entries = list(directory);
  Bounds own = bounds_in(directory, top, cache, entries);
  fill_open(own.declared, own.installed);
  for (const DirectoryEntry& entry : entries) {
    if (!holds_image(entry)) continue;
    const std::string folder = directory + entry.name + "/";
    Bounds image = bounds_in(folder, top, cache, list(folder));
    fill_open(image.declared, image.installed);
    fill_open(own.declared, image.declared);
  }
  return own.declared;
}

}  // namespace bench::diagnose
