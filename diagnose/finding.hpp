// What a rule reports: where, how sure, why, what to do, and, where it is safe, the edit that does
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bench::diagnose {

enum class Severity : std::uint8_t { info, warning, error };
enum class Confidence : std::uint8_t { certain, likely, check };
enum class Category : std::uint8_t {
  correctness,
  throughput,
  memory,
  hang,
  portability,
  deprecated,
};

std::string_view name_of(Severity severity);
std::string_view name_of(Confidence confidence);
std::string_view name_of(Category category);

// Replaces bytes [begin, end) of a file.
struct Edit {
  std::string file;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::string text;
};

struct Fix {
  std::string title;
  std::vector<Edit> edits;
};

struct Finding {
  std::string rule;  // id
  std::string name;
  Category category = Category::correctness;
  Severity severity = Severity::warning;
  Confidence confidence = Confidence::likely;
  std::string file;
  std::uint32_t line = 1;  // 1-based; columns in characters
  std::uint32_t column = 1;
  std::uint32_t end_line = 1;
  std::uint32_t end_column = 1;
  std::string message;
  std::string help;
  std::string excerpt;  // the line it stands on, for readers without the file
  std::optional<Fix> fix;
  std::vector<std::pair<std::string, std::string>> evidence;
};

}  // namespace bench::diagnose
