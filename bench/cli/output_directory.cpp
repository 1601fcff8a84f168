#include "bench/cli/output_directory.hpp"

#include "bench/cli/write_probe.hpp"
#include "bench/core/error.hpp"
#include "bench/core/utc_time.hpp"

namespace bench::cli {
namespace {

namespace fs = std::filesystem;

// Two runs that start in the same second get directories of their own.
fs::path fresh_default(const std::string& scenario) {
  const fs::path base =
      fs::path("results") / "runs" / (utc_time("%Y%m%dT%H%M%SZ") + "-" + scenario);
  fs::path path = base;
  for (int n = 2; fs::exists(path); ++n) path = base.string() + "-" + std::to_string(n);
  return path;
}

// Asks by doing: permissions, read-only file systems and full disks all look different.
void require_writable(const fs::path& directory) {
  const std::string reason = why_not_writable(directory / probe_name());
  if (!reason.empty()) {
    throw MachineError("--out: cannot write to '" + directory.string() + "': " + reason);
  }
}

}  // namespace

fs::path prepare_output(const std::string& given, const std::string& scenario) {
  fs::path directory = given.empty() ? fresh_default(scenario) : fs::path(given);
  std::error_code error;
  if (fs::exists(directory, error) && !fs::is_directory(directory, error)) {
    throw UsageError("--out: '" + directory.string() + "' is a file; expected a directory");
  }
  fs::create_directories(directory, error);
  if (error) {
    throw MachineError("--out: cannot create '" + directory.string() + "': " + error.message());
  }
  require_writable(directory);
  return directory;
}

fs::path resume_output(const std::string& given) {
  fs::path directory = given;
  std::error_code error;
  if (!fs::is_directory(directory, error)) {
    throw UsageError("--resume: no such directory '" + given + "'");
  }
  require_writable(directory);
  return directory;
}

}  // namespace bench::cli
