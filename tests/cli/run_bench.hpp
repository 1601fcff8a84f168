// Drives the real `bench` as a user's shell does and gives back exit code, standard output and
// standard error together. Every call starts in a directory of the test's own, with the mock worker
// and without the machine's GPUs, unless the test says otherwise.
#pragma once

#include "bench/core/temporary_directory.hpp"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace bench::cli_test {

struct Answer {
  int exit_code = -1;  // 128 + signal when it was killed
  std::string out;
  std::string err;
};

using Environment = std::vector<std::pair<std::string, std::string>>;

// A fresh directory for one test, removed with it.
class Workspace {
 public:
  const std::filesystem::path& path() const { return directory_.path(); }
  std::filesystem::path write(const std::string& name, const std::string& text) const;
  std::string read(const std::string& name) const;
  bool has(const std::string& name) const;

  // PWD among `extra` is the folder below the workspace's own in which it starts.
  Answer bench(const std::vector<std::string>& arguments, const Environment& extra = {}) const;
  // With `input` as its standard input.
  Answer bench_reading(const std::string& input, const std::vector<std::string>& arguments,
                       const Environment& extra = {}) const;
  // Presses Ctrl-C once the program has printed `progress` to standard error.
  Answer bench_interrupted_at(const std::string& progress,
                              const std::vector<std::string>& arguments,
                              const Environment& extra = {}) const;

 private:
  int start(const std::vector<std::string>& arguments, const Environment& extra) const;
  Answer wait_for(int child) const;

  TemporaryDirectory directory_;
};

}  // namespace bench::cli_test
