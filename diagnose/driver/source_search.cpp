#include "diagnose/driver/source_search.hpp"

#include "bench/core/error.hpp"
#include "diagnose/launch/launch_documents.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <system_error>

namespace bench::diagnose {
namespace {

namespace fs = std::filesystem;

bool can_list(const fs::path& directory) { return ::access(directory.c_str(), R_OK | X_OK) == 0; }

// The files of one directory that was given, and what is left out of it.
class Walk {
 public:
  Walk(fs::path top, const PathPatterns& exclude, FoundSources& found)
      : top_(std::move(top)), exclude_(exclude), found_(found) {}

  void run() {
    std::error_code error;
    if (!can_list(top_)) throw UsageError(top_.string() + ": cannot be read: permission denied");
    fs::recursive_directory_iterator at(top_, fs::directory_options::skip_permission_denied, error);
    if (error) throw UsageError(top_.string() + ": cannot be read: " + error.message());
    if (is_excluded(shown_path(top_.string()), true)) at = {};
    for (; at != fs::recursive_directory_iterator(); at.increment(error)) {
      if (error) break;
      const auto status = at->symlink_status(error);
      if (error) continue;
      if (fs::is_directory(status)) {
        if (!enter(at->path())) at.disable_recursion_pending();
      } else if (fs::is_regular_file(status)) {
        take(at->path());
      }
    }
    if (sources_ == 0 && !used_.empty()) note_emptied();
  }

 private:
  bool is_excluded(const std::string& path, bool is_folder) {
    const PathPattern* pattern = exclude_.match(path, is_folder);
    if (pattern != nullptr) used_.insert(pattern->shown());
    return pattern != nullptr;
  }

  bool enter(const fs::path& directory) {
    if (is_skipped_directory(directory.filename().string())) return false;
    const std::string path = shown_path(directory.string());
    if (is_excluded(path, true)) return false;
    if (!can_list(directory)) found_.unreadable.push_back(path);
    return true;
  }

  void take(const fs::path& file) {
    const std::string path = shown_path(file.string());
    const FileType type = type_of(path);
    if (type == FileType::other && launch_document(path) == LaunchDocument::none) return;
    if (is_excluded(path, false)) return;
    if (type != FileType::other) ++sources_;
    found_.files.push_back({path, type, top_.string()});
  }

  void note_emptied() {
    std::string patterns;
    for (const std::string& each : used_) patterns += (patterns.empty() ? "" : ", ") + each;
    found_.emptied.push_back(
        {shown_path(top_.string()), "nothing is checked: all is excluded by " + patterns, false});
  }

  fs::path top_;
  const PathPatterns& exclude_;
  FoundSources& found_;
  std::size_t sources_ = 0;     // taken that can be checked
  std::set<std::string> used_;  // patterns, as they are shown
};

// A script without a telling name, by its first line: #!/bin/bash, #!/usr/bin/env zsh.
FileType type_by_first_line(std::string_view text) {
  const std::string_view line = text.substr(0, std::min<std::size_t>(text.find('\n'), 128));
  return line.starts_with("#!") && line.find("sh") != std::string::npos ? FileType::shell
                                                                        : FileType::python;
}

// A folder that scripts import by its name: what it imports begins above it, even where it has a
// pyproject.toml of its own.
bool is_package(const std::vector<DirectoryEntry>& entries) {
  return std::any_of(entries.begin(), entries.end(),
                     [](const DirectoryEntry& entry) { return entry.name == "__init__.py"; });
}

// Where imports of a file that was given by itself may lead: up to its project's root, at most
// three folders above. Without a mark of one it is the file's own folder: what lies beside that may
// belong to anybody.
std::string tree_around(const std::string& shown) {
  constexpr int kMaxLevels = 4;  // its own folder among them
  const fs::path own = fs::path(shown).parent_path();
  fs::path directory = own;
  std::optional<fs::path> found;
  for (int level = 0; level < kMaxLevels; ++level) {
    const auto entries = list_directory(directory.empty() ? "" : (directory / "").string());
    const bool is_root = is_project_root(entries);
    if (is_root && (!found || !is_package(entries))) found = directory;
    if (is_root && !is_package(entries)) break;
    const bool leads_up = !directory.empty() && *std::prev(directory.end()) == "..";
    if (directory.empty() || leads_up || directory == directory.parent_path()) break;
    directory = directory.parent_path();
  }
  if (found) return found->empty() ? "." : found->string();
  return own.empty() ? "." : own.string();
}

SourceFile named_file(const std::string& path, std::string_view text) {
  FileType type = type_of(path);
  if (type == FileType::other) type = type_by_first_line(text);  // as in scripts/train
  const std::string shown = shown_path(path);
  return {shown, type, tree_around(shown), true};
}

std::string beginning_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text(128, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

SourceFile checked_file(const std::string& path, const fs::file_status& status) {
  std::error_code error;
  if (!fs::is_regular_file(status))
    throw UsageError(path + ": not a regular file; expected a script or a directory");
  if (fs::file_size(path, error) > kMaxFileBytes)
    throw UsageError(path + ": larger than 10 MiB; expected a training script or its config");
  if (::access(path.c_str(), R_OK) != 0) throw UsageError(path + ": cannot be read");
  return named_file(path, beginning_of(path));
}

// By what the paths lead to: ., ./a.py and a.py are one file. The first stays.
void drop_repeated(std::vector<SourceFile>& files) {
  std::set<std::string> seen;
  std::error_code error;
  std::erase_if(files, [&](const SourceFile& file) {
    const fs::path real = fs::weakly_canonical(file.path, error);
    return !seen.insert(error ? file.path : real.string()).second;
  });
}

}  // namespace

FoundSources find_sources(const DiagnoseOptions& options) {
  FoundSources found;
  std::vector<SourceFile>& files = found.files;
  if (options.given_text) {
    files.push_back(named_file(options.given_text->path, options.given_text->text));
    return found;
  }
  const std::vector<std::string>& paths = options.paths;
  for (const std::string& path : paths) {
    std::error_code error;
    const auto status = fs::status(path, error);
    if (error || !fs::exists(status))
      throw UsageError(path +
                       ": no such file or directory; expected a script, a notebook, a shell "
                       "script, a config file or a directory of them");
    if (fs::is_directory(status))
      Walk(path, options.exclude, found).run();
    else
      files.push_back(checked_file(path, status));
  }
  std::stable_sort(files.begin(), files.end(),
                   [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  files.erase(
      std::unique(files.begin(), files.end(),
                  [](const SourceFile& a, const SourceFile& b) { return a.path == b.path; }),
      files.end());
  if (paths.size() > 1) drop_repeated(files);
  const auto is_source = [](const SourceFile& file) { return file.type != FileType::other; };
  if (found.emptied.empty() && std::none_of(files.begin(), files.end(), is_source))
    throw UsageError((paths.empty() ? std::string("bench diagnose") : paths.front()) +
                     ": holds no script, notebook, shell script or config file");
  return found;
}

Reader reader_of(const DiagnoseOptions& options) {
  if (!options.given_text) return read_source;
  return [given = *options.given_text](const std::string& path) -> std::optional<std::string> {
    if (path == given.path) return given.text;
    return given.has_place ? read_source(path) : std::nullopt;
  };
}

Lister lister_of(const DiagnoseOptions& options) {
  if (!options.given_text || options.given_text->has_place) return list_directory;
  return [](const std::string&) { return std::vector<DirectoryEntry>(); };
}

}  // namespace bench::diagnose
