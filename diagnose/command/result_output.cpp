#include "diagnose/command/result_output.hpp"

#include "bench/core/error.hpp"
#include "diagnose/driver/source_files.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace bench::diagnose {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& file, const std::string& why) {
  throw MachineError("--output-file " + (file.empty() ? "''" : file) +
                     ": cannot be written: " + why);
}

// What the system calls open files by: /dev/stdout, /proc/self/fd/3.
bool names_descriptor(const std::string& file) {
  const std::string path = fs::path(file).lexically_normal().string();
  return path == "/dev/stdout" || path == "/dev/stderr" || path.starts_with("/dev/fd/") ||
         (path.starts_with("/proc/") && path.find("/fd/") != std::string::npos);
}

// It is where standard output goes, to which a shell may append.
bool is_standard_output(const std::string& file) {
  struct stat named {};
  struct stat standard {};
  return ::stat(file.c_str(), &named) == 0 && ::fstat(STDOUT_FILENO, &standard) == 0 &&
         named.st_dev == standard.st_dev && named.st_ino == standard.st_ino;
}

// Pipes and devices (/dev/stderr) are written to; a file in their place would replace them.
bool is_written_in_place(const std::string& file) {
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  return fs::exists(status) && (!fs::is_regular_file(status) || names_descriptor(file));
}

std::string write_in_place(const std::string& file, const std::string& text) {
  std::FILE* out = std::fopen(file.c_str(), "ab");
  if (out == nullptr) return std::strerror(errno);
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), out) == text.size();
  const bool closed = std::fclose(out) == 0;
  return written && closed ? "" : std::strerror(errno);
}

}  // namespace

ResultOutput::ResultOutput(std::optional<std::string> file) : file_(std::move(file)) {
  if (file_ && *file_ == "-") file_.reset();
  if (!file_) return;
  std::error_code error;
  if (fs::is_directory(*file_, error)) refuse(*file_, "is a directory");
  if (is_standard_output(*file_) || is_written_in_place(*file_)) return;
  const fs::path target = behind_links(*file_);
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  if (!fs::is_directory(folder, error)) refuse(*file_, "no such folder: " + folder.string());
  if (target.filename().empty()) refuse(*file_, "names no file");
  if (const std::string why = why_not_replaced(target.string()); !why.empty()) refuse(*file_, why);
  if (::access(folder.c_str(), W_OK | X_OK) != 0) refuse(*file_, std::strerror(errno));
}

bool ResultOutput::wants_color() const {
  return !file_ && ::isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
}

void ResultOutput::write(std::string_view text) {
  if (file_)
    text_ += text;
  else
    std::fwrite(text.data(), 1, text.size(), stdout);
}

void ResultOutput::finish() {
  if (!file_) return;
  if (is_standard_output(*file_)) {
    std::fwrite(text_.data(), 1, text_.size(), stdout);
    return;
  }
  const std::string why =
      is_written_in_place(*file_) ? write_in_place(*file_, text_) : replace_file(*file_, text_);
  if (!why.empty()) refuse(*file_, why);
}

}  // namespace bench::diagnose
