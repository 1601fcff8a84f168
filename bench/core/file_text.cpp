#include "bench/core/file_text.hpp"

#include <fstream>
#include <iterator>
#include <system_error>

namespace bench {

std::optional<std::string> file_text(const std::filesystem::path& path) {
  // A directory opens, and reads as an empty file.
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad()) return std::nullopt;
  return text;
}

}  // namespace bench
