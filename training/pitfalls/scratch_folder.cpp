#include "training/pitfalls/scratch_folder.hpp"

#include "bench/core/error.hpp"

#include <cstdlib>
#include <filesystem>

namespace bench::training {

ScratchFolder::ScratchFolder() {
  path_ = (std::filesystem::temp_directory_path() / "bench-pitfall-XXXXXX").string();
  if (::mkdtemp(path_.data()) == nullptr)
    throw MachineError(path_ + ": cannot make a temporary folder");
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace bench::training
