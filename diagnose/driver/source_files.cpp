#include "diagnose/driver/source_files.hpp"

#include "bench/core/error.hpp"
#include "diagnose/launch/launch_documents.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>

namespace bench::diagnose {
namespace {

namespace fs = std::filesystem;

}  // namespace

bool is_skipped_directory(const std::string& name) {
  static constexpr std::string_view kSkipped[] = {"node_modules", "__pycache__", "site-packages",
                                                  "build",        "dist",        "venv"};
  return name.starts_with(".") ||
         std::find(std::begin(kSkipped), std::end(kSkipped), name) != std::end(kSkipped);
}

namespace {

bool can_list(const fs::path& directory) { return ::access(directory.c_str(), R_OK | X_OK) == 0; }

void walk(const fs::path& top, std::vector<SourceFile>& out, std::vector<std::string>* unreadable) {
  std::error_code error;
  if (!can_list(top)) throw UsageError(top.string() + ": cannot be read: permission denied");
  fs::recursive_directory_iterator at(top, fs::directory_options::skip_permission_denied, error);
  if (error) throw UsageError(top.string() + ": cannot be read: " + error.message());
  for (; at != fs::recursive_directory_iterator(); at.increment(error)) {
    if (error) break;
    const auto status = at->symlink_status(error);
    if (error) continue;
    const std::string path = shown_path(at->path().string());
    if (fs::is_directory(status)) {
      if (is_skipped_directory(at->path().filename().string()))
        at.disable_recursion_pending();
      else if (unreadable != nullptr && !can_list(at->path()))
        unreadable->push_back(path);
      continue;
    }
    if (!fs::is_regular_file(status)) continue;
    const FileType type = type_of(path);
    if (type != FileType::other || launch_document(path) != LaunchDocument::none)
      out.push_back({path, type, top.string()});
  }
}

// The first line of a script without a telling name: #!/bin/bash, #!/usr/bin/env zsh.
FileType type_by_first_line(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string line(128, '\0');
  in.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<std::size_t>(in.gcount()));
  line = line.substr(0, line.find('\n'));
  return line.starts_with("#!") && line.find("sh") != std::string::npos ? FileType::shell
                                                                        : FileType::python;
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

std::string shown_path(const std::string& path) {
  return fs::path(path).lexically_normal().string();
}

FileType type_of(const std::string& path) {
  std::string extension = fs::path(path).extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (extension == ".py" || extension == ".pyw") return FileType::python;
  if (extension == ".ipynb") return FileType::notebook;
  if (extension == ".sh" || extension == ".bash" || extension == ".slurm" ||
      extension == ".sbatch" || extension == ".slm" || extension == ".zsh" || extension == ".ksh")
    return FileType::shell;
  if (extension == ".yaml" || extension == ".yml") return FileType::yaml;
  if (extension == ".toml") return FileType::toml;
  if (extension == ".json") return FileType::json;
  return FileType::other;
}

std::vector<SourceFile> find_sources(const std::vector<std::string>& paths,
                                     std::vector<std::string>* unreadable) {
  std::vector<SourceFile> out;
  for (const std::string& path : paths) {
    std::error_code error;
    const auto status = fs::status(path, error);
    if (error || !fs::exists(status))
      throw UsageError(path +
                       ": no such file or directory; expected a script, a notebook, a shell "
                       "script, a config file or a directory of them");
    if (fs::is_directory(status)) {
      walk(path, out, unreadable);
      continue;
    }
    if (!fs::is_regular_file(status))
      throw UsageError(path + ": not a regular file; expected a script or a directory");
    if (fs::file_size(path, error) > kMaxFileBytes)
      throw UsageError(path + ": larger than 10 MiB; expected a training script or its config");
    if (::access(path.c_str(), R_OK) != 0) throw UsageError(path + ": cannot be read");
    FileType type = type_of(path);
    if (type == FileType::other) type = type_by_first_line(path);  // named, as in scripts/train
    const std::string shown = shown_path(path);
    std::string top = fs::path(shown).parent_path().string();
    out.push_back({shown, type, top.empty() ? "." : top, true});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  out.erase(std::unique(out.begin(), out.end(),
                        [](const SourceFile& a, const SourceFile& b) { return a.path == b.path; }),
            out.end());
  if (paths.size() > 1) drop_repeated(out);
  const auto is_source = [](const SourceFile& file) { return file.type != FileType::other; };
  if (std::none_of(out.begin(), out.end(), is_source))
    throw UsageError((paths.empty() ? std::string("bench diagnose") : paths.front()) +
                     ": holds no script, notebook, shell script or config file");
  return out;
}

std::optional<std::string> read_source(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return std::nullopt;
  struct stat status {};
  std::optional<std::string> out;
  if (::fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
      static_cast<std::uint64_t>(status.st_size) <= kMaxFileBytes) {
    std::string text(static_cast<std::size_t>(status.st_size), '\0');
    std::size_t have = 0;
    while (have < text.size()) {
      const ssize_t got = ::read(file, text.data() + have, text.size() - have);
      if (got <= 0) break;
      have += static_cast<std::size_t>(got);
    }
    text.resize(have);
    out = std::move(text);
  }
  ::close(file);
  return out;
}

void write_source(const std::string& path, const std::string& text) {
  std::error_code error;
  // A link stays one: the file behind it is written.
  fs::path target = fs::canonical(path, error);
  if (error) target = path;
  std::string beside = target.string() + ".bench-fix";
  for (int i = 1; fs::exists(beside, error); ++i)
    beside = target.string() + ".bench-fix" + std::to_string(i);
  std::ofstream out(beside, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out) {
    fs::remove(beside, error);
    throw UsageError(path + ": cannot be written");
  }
  fs::permissions(beside, fs::status(target).permissions(), error);
  fs::rename(beside, target, error);
  if (error) {
    const std::string why = error.message();
    fs::remove(beside, error);
    throw UsageError(path + ": cannot be written: " + why);
  }
}

}  // namespace bench::diagnose
