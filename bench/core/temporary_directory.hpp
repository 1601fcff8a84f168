// A directory that only its maker uses, gone with the object.
#pragma once

#include <filesystem>
#include <string>

namespace bench {

// Made empty below the system's directory for temporary files, under a name that no other process
// has; removed with all that was put into it. Throws MachineError where it cannot be made.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory();

  const std::filesystem::path& path() const { return path_; }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace bench
