#include "diagnose/driver/project_scripts.hpp"

#include "diagnose/driver/importers.hpp"
#include "diagnose/driver/notebook.hpp"
#include "diagnose/driver/source_files.hpp"

#include <algorithm>
#include <deque>

namespace bench::diagnose {
namespace {

constexpr std::size_t kMaxFiles = 1024;
constexpr std::size_t kMaxNotebooks = 32;
constexpr std::size_t kMaxNotebookBytes = 2U << 20;  // most of a large one is pictures
constexpr std::size_t kMaxDirectories = 512;
constexpr std::size_t kMaxBytes = 16U << 20;  // read for one question
constexpr int kMaxDepth = 8;

}  // namespace

// Nearest to the root first, so that a bound leaves out what lies deep.
void ProjectScripts::walk(const std::string& root, Files& out) const {
  std::deque<std::pair<std::string, int>> pending{{root, 0}};
  std::size_t directories = 0;
  while (!pending.empty() && ++directories <= kMaxDirectories) {
    const auto [directory, depth] = pending.front();
    pending.pop_front();
    for (const DirectoryEntry& entry : list_(directory)) {
      const std::string path = directory + entry.name;
      if (entry.is_link) continue;
      if (entry.is_directory) {
        if (depth < kMaxDepth && !is_skipped_directory(entry.name))
          pending.emplace_back(path + "/", depth + 1);
        continue;
      }
      const FileType type = type_of(path);
      if (type == FileType::notebook && out.notebooks.size() < kMaxNotebooks)
        out.notebooks.push_back(path);
      if (type != FileType::python) continue;
      if (out.scripts.size() >= kMaxFiles) return;
      out.scripts.push_back(path);
    }
  }
}

const ProjectScripts::Files& ProjectScripts::files_of(const std::string& root) {
  auto& known = files_[root];
  if (!known) {
    known = std::make_unique<Files>();
    walk(root, *known);
  }
  return *known;
}

bool ProjectScripts::any(const std::string& root, const std::string& question,
                         const std::function<bool(std::string_view text)>& accepts) {
  const std::lock_guard lock(mutex_);
  const auto known = answers_.find({root, question});
  if (known != answers_.end()) return known->second;
  std::size_t bytes = 0;
  bool found = false;
  const Files& files = files_of(root);
  for (const std::string& file : files.scripts) {
    const auto text = cache_.read(file);
    if (!text) continue;
    bytes += text->size();
    if (bytes > kMaxBytes) break;
    found = accepts(*text);
    if (found) break;
  }
  for (const std::string& file : files.notebooks) {
    if (found || bytes > kMaxBytes) break;
    const auto json = cache_.read(file);
    if (!json || json->size() > kMaxNotebookBytes) continue;
    bytes += json->size();
    found = accepts(notebook_source(*json).text);
  }
  return answers_[{root, question}] = found;
}

std::vector<std::pair<std::string, std::uint32_t>> ProjectScripts::where(const std::string& root,
                                                                         const LineOf& line_of) {
  constexpr std::size_t kMostPlaces = 16;
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<std::string, std::uint32_t>> out;
  std::size_t bytes = 0;
  for (const std::string& file : files_of(root).scripts) {
    const auto text = cache_.read(file);
    if (!text) continue;
    bytes += text->size();
    if (bytes > kMaxBytes || out.size() == kMostPlaces) break;
    if (const auto line = line_of(*text)) out.emplace_back(file, *line);
  }
  return out;
}

std::vector<std::string> ProjectScripts::importers(const std::string& root,
                                                   const std::string& file) {
  const std::lock_guard lock(mutex_);
  return importers_of(file, files_of(root).scripts,
                      [this](const std::string& path) { return cache_.read(path); });
}

}  // namespace bench::diagnose
