// Golden files: expected output kept as files beside the test. BENCH_UPDATE_GOLDEN=1 rewrites all
// of them; the diff is then for the reviewer.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace bench {

// Compares `actual` with the file, or rewrites that file.
inline void expect_file(const std::filesystem::path& path, const std::string& actual) {
  const char* update = std::getenv("BENCH_UPDATE_GOLDEN");
  if (update != nullptr && *update != '\0' && std::string(update) != "0") {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << actual;
    return;
  }
  std::ifstream file(path, std::ios::binary);
  ASSERT_TRUE(file) << path << " is missing; BENCH_UPDATE_GOLDEN=1 writes it";
  const std::string expected((std::istreambuf_iterator<char>(file)),
                             std::istreambuf_iterator<char>());
  if (expected == actual) return;
  const auto differs =
      std::mismatch(expected.begin(), expected.end(), actual.begin(), actual.end());
  const auto line = 1 + std::count(expected.begin(), differs.first, '\n');
  const auto at = static_cast<std::size_t>(differs.first - expected.begin());
  const auto start = at < 60 ? 0 : at - 60;
  FAIL() << path << ":" << line
         << ": differs; BENCH_UPDATE_GOLDEN=1 accepts the new text\nexpected: "
         << expected.substr(start, 160) << "\nactual:   " << actual.substr(start, 160);
}

// The same with tests/golden/expected/NAME.
inline void expect_golden(const std::string& name, const std::string& actual) {
  expect_file(std::filesystem::path(BENCH_GOLDEN_DIR) / name, actual);
}

}  // namespace bench
