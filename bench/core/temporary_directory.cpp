#include "bench/core/temporary_directory.hpp"

#include "bench/core/error.hpp"

#include <stdlib.h>

#include <system_error>

namespace bench {

TemporaryDirectory::TemporaryDirectory() {
  std::error_code error;
  const std::filesystem::path system = std::filesystem::temp_directory_path(error);
  if (error) throw MachineError("no directory for temporary files: " + error.message());
  std::string pattern = (system / "bench-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw MachineError("cannot create '" + pattern + "'");
  path_ = pattern;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace bench
