#include "diagnose/driver/source_files.hpp"

#include "bench/core/error.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
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

// As far as links are followed.
std::string behind_links(const std::string& path) {
  constexpr int kMostLinks = 40;  // as the system has it
  std::error_code error;
  if (const fs::path target = fs::canonical(path, error); !error) return target.string();
  fs::path at = path;  // the last link leads to nothing
  for (int i = 0; i < kMostLinks && fs::is_symlink(at, error); ++i) {
    const fs::path next = fs::read_symlink(at, error);
    if (error) break;
    at = at.parent_path() / next;  // next alone where it is absolute
  }
  return at.string();
}

std::string why_not_replaced(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    return errno == ENOENT ? std::string() : std::strerror(errno);
  constexpr mode_t kAnyWrite = S_IWUSR | S_IWGRP | S_IWOTH;
  const bool is_read_only = (status.st_mode & kAnyWrite) == 0 || ::access(path.c_str(), W_OK) != 0;
  return is_read_only ? "is read-only" : std::string();
}

std::string replace_file(const std::string& path, const std::string& text) {
  std::error_code error;
  // A link stays one: the file behind it is written.
  const fs::path target = behind_links(path);
  if (std::string why = why_not_replaced(target.string()); !why.empty()) return why;
  const bool is_new = !fs::exists(target, error);
  // The name is as long as the system allows at most, what is added included.
  constexpr std::size_t kMostOfName = 200;
  const fs::path folder = target.parent_path();
  const std::string name = target.filename().string().substr(0, kMostOfName) + ".bench-fix";
  std::string beside = (folder / name).string();
  for (int i = 1; fs::exists(beside, error); ++i)
    beside = (folder / name).string() + std::to_string(i);
  errno = 0;
  std::ofstream out(beside, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out) {
    const std::string why = errno != 0 ? std::strerror(errno) : "unknown error";
    fs::remove(beside, error);
    return why;
  }
  if (!is_new) fs::permissions(beside, fs::status(target).permissions(), error);
  fs::rename(beside, target, error);
  if (!error) return {};
  const std::string why = error.message();
  fs::remove(beside, error);
  return why;
}

void write_source(const std::string& path, const std::string& text) {
  if (const std::string why = replace_file(path, text); !why.empty())
    throw UsageError(path + ": cannot be written: " + why);
}

}  // namespace bench::diagnose
