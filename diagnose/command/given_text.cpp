#include "diagnose/command/given_text.hpp"

#include "bench/core/error.hpp"
#include "diagnose/driver/source_files.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace bench::diagnose {
namespace {

std::string standard_input() {
  std::string text;
  std::array<char, 1 << 16> buffer{};
  while (true) {
    const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      throw UsageError(std::string("-: standard input cannot be read: ") + std::strerror(errno));
    if (got == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
    if (text.size() > kMaxFileBytes)
      throw UsageError("-: standard input is larger than 10 MiB; expected a training script");
  }
}

}  // namespace

void take_standard_input(const std::optional<std::string>& name, DiagnoseOptions& options) {
  const std::vector<std::string>& paths = options.paths;
  if (std::find(paths.begin(), paths.end(), "-") == paths.end()) {
    if (name) throw UsageError("--stdin-filename: expected - among the paths, for standard input");
    return;
  }
  if (paths.size() > 1) throw UsageError("-: cannot be combined with other paths");
  std::error_code error;
  if (name &&
      (name->empty() || name->ends_with('/') || std::filesystem::is_directory(*name, error)))
    throw UsageError("--stdin-filename '" + *name + "': expected the path of a file");
  const std::string path = name ? shown_path(*name) : kStandardInput;
  options.given_text = GivenText{path, standard_input(), name.has_value()};
  options.paths = {path};
}

}  // namespace bench::diagnose
