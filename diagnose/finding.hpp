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

// A part of a file as editors and SARIF count: from 1, columns in UTF-16 code units, the end
// behind the last character. Columns of 0 are not known; a line of 0 says that nothing is.
struct Utf16Region {
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::uint32_t end_line = 0;
  std::uint32_t end_column = 0;
};

// Replaces bytes [begin, end) of a file.
struct Edit {
  std::string file;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::string text;
  Utf16Region region;  // the same, filled in by the driver
};

struct Fix {
  std::string title;
  std::vector<Edit> edits;
};

// For mistakes that none of the rule's trials in the laboratory makes.
inline constexpr std::string_view kNoTrial = "none";

// The file of findings on the command that --launch gives, which stands in none.
inline constexpr std::string_view kLaunchOption = "<launch>";

struct Finding {
  std::string rule;  // id
  std::string name;
  std::string trial;  // the form of the laboratory's trial that makes this mistake; empty: any
  Category category = Category::correctness;
  Severity severity = Severity::warning;
  Confidence confidence = Confidence::likely;
  std::string file;
  std::uint32_t line = 1;  // 1-based; columns in characters
  std::uint32_t column = 1;
  std::uint32_t end_line = 1;
  std::uint32_t end_column = 1;
  std::uint32_t cell_line = 0;  // in the text that a notebook's cells make together; 0 elsewhere
  Utf16Region region;  // the same for editors, filled in by the driver
  std::string message;
  std::string help;
  std::string excerpt;  // the line it stands on, for readers without the file
  std::optional<Fix> fix;
  bool forbids_fix = false;  // a fix that another program offers for it would damage this one
  bool is_for_readers = false;  // told where it stands in a README, too, which nothing runs
  std::vector<std::pair<std::string, std::string>> evidence;
};

}  // namespace bench::diagnose
