#include "diagnose/driver/project_requirements.hpp"

#include "diagnose/config/readme_versions.hpp"
#include "diagnose/driver/assemble.hpp"
#include "diagnose/launch/launch_documents.hpp"
#include "diagnose/model/role_names.hpp"

#include <algorithm>
#include <array>

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

ReadVersions installs_of(std::string_view name) {
  switch (launch_document(name)) {
    case LaunchDocument::readme:
      return read_page;
    case LaunchDocument::shell:
    case LaunchDocument::makefile:
    case LaunchDocument::dockerfile:
      return read_installs;
    default:
      return nullptr;
  }
}

bool has_ending(std::string_view name, std::string_view ending) {
  return name.size() > ending.size() && name.ends_with(ending);
}

// project.yml: the list that `conda env export` writes may have any name.
NewestVersions read_conda_list(std::string_view text) {
  const auto begins_line = [&](std::string_view word) {
    const std::size_t at = text.find(word);
    return at != std::string_view::npos && (at == 0 || text[at - 1] == '\n');
  };
  return begins_line("channels:") && begins_line("dependencies:") ? read_requirements(text)
                                                                  : NewestVersions{};
}

// docs/install.md, docs/getting_started.md
bool is_installation_page(std::string_view name) {
  const std::string plain = lowered(name);
  if (!has_ending(plain, ".md") && !has_ending(plain, ".rst")) return false;
  for (const std::string_view word : {"install", "started", "setup", "environment", "prepare_env"})
    if (plain.find(word) != std::string::npos) return true;
  return false;
}

// What the files of one directory say.
struct Bounds {
  NewestVersions declared;
  NewestVersions installed;
};

// Pages of a folder of documentation; the others there may speak of anything.
ReadVersions installs_of_page(std::string_view name) {
  return is_installation_page(name) ? read_page : nullptr;
}

ReadVersions installs_of_project(std::string_view name) {
  if (is_installation_page(name)) return read_page;
  if (has_ending(name, ".yml") || has_ending(name, ".yaml")) return read_conda_list;
  return installs_of(name);
}

// What reads a file of this name for what it declares, and, where nothing does, for what it
// installs.
struct Readers {
  ReadVersions (*declares)(std::string_view name);
  ReadVersions (*installs)(std::string_view name);
};

constexpr Readers kProject{reader_of, installs_of_project};
constexpr Readers kImage{reader_of, installs_of};
constexpr Readers kPages{[](std::string_view) -> ReadVersions { return nullptr; },
                         installs_of_page};

Bounds bounds_in(const std::string& directory, const std::string& top, const ModuleCache& cache,
                 const std::vector<DirectoryEntry>& entries, const Readers& readers) {
  Bounds out;
  int left = kMaxInstallFiles;
  for (const DirectoryEntry& entry : entries) {
    if (entry.is_directory) continue;
    const ReadVersions declares = readers.declares(entry.name);
    const ReadVersions installs = declares == nullptr ? readers.installs(entry.name) : nullptr;
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

bool holds_pages(const DirectoryEntry& entry) {
  return entry.is_directory && !entry.is_link && (entry.name == "docs" || entry.name == "doc");
}

}  // namespace

bool is_requirement_file(std::string_view name) { return reader_of(name) != nullptr; }

NewestVersions read_page(std::string_view text) {
  return merged(read_installs(text), read_readme(text));
}

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
  Bounds own = bounds_in(directory, top, cache, entries, kProject);
  fill_open(own.declared, own.installed);
  for (const DirectoryEntry& entry : entries) {
    const bool is_image = holds_image(entry);
    if (!is_image && !holds_pages(entry)) continue;
    const std::string folder = directory + entry.name + "/";
    Bounds there = bounds_in(folder, top, cache, list(folder), is_image ? kImage : kPages);
    fill_open(there.declared, there.installed);
    fill_open(own.declared, there.declared);
  }
  return own.declared;
}

}  // namespace bench::diagnose
