#include "bench/cli/write_probe.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

namespace bench::cli {

std::string why_not_writable(const std::filesystem::path& probe) {
  errno = 0;
  std::ofstream file(probe);
  file << "bench\n" << std::flush;
  const int reason = errno;
  const bool written = static_cast<bool>(file);
  file.close();
  std::error_code ignored;
  std::filesystem::remove(probe, ignored);
  return written ? std::string() : std::string(std::strerror(reason));
}

std::string probe_name() { return ".bench-write-test-" + std::to_string(getpid()); }

}  // namespace bench::cli
