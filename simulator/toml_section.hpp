// Strict reading of one TOML table: every problem is a UsageError with file, line and what was
// expected, and keys that nobody asked for are refused with the nearest known one.
#pragma once

#include "simulator/machine.hpp"

#include <toml++/toml.h>

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bench::simulator {

inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();

class TomlSection {
 public:
  // `table` must outlive the section; `name` is "" for the file's root.
  TomlSection(const toml::table& table, std::string file, std::string name);

  bool has(std::string_view key);
  // Numbers are above `above` and at most `most`.
  double number(std::string_view key, double above = 0, double most = kNoLimit);
  double number_or(std::string_view key, double fallback, double above = 0, double most = kNoLimit);
  std::int32_t integer(std::string_view key, std::int32_t least, std::int32_t most);
  std::int32_t integer_or(std::string_view key, std::int32_t fallback, std::int32_t least,
                          std::int32_t most);
  bool boolean_or(std::string_view key, bool fallback);
  std::string text(std::string_view key);
  std::string text_or(std::string_view key, std::string fallback);
  std::vector<std::string> texts_or_empty(std::string_view key);
  // [[x, y], ...] with x ascending, both positive and y at most `most`.
  std::vector<std::pair<double, double>> curve(std::string_view key, double most = kNoLimit);
  // [[1, 2], [3]]: rows of integers.
  std::vector<std::vector<std::int32_t>> rows_or_empty(std::string_view key);
  std::vector<std::int32_t> integers_or_empty(std::string_view key);
  // Null when missing.
  const toml::table* table(std::string_view key);
  // The same, null also when the key is something else than a table.
  const toml::table* table_or_null(std::string_view key);
  const toml::array* tables(std::string_view key);

  // A number with its provenance: the table's `provenance`, unless one of the lists `measured`,
  // `scaled`, `specification` and `recalled` of the same table names the key.
  Quantity quantity(std::string_view key, double above = 0, double most = kNoLimit);
  Quantity quantity_or(std::string_view key, double fallback, Provenance provenance,
                       double above = 0, double most = kNoLimit);
  // Reads those keys; to be called before the first quantity().
  void read_provenance(const TomlSection* parent = nullptr);

  // Refuses keys that were never asked for.
  void finish() const;
  [[noreturn]] void fail(std::string_view key, const std::string& message) const;
  // "file:line: " of a key, or of the table when it lacks the key.
  std::string where(std::string_view key) const;
  const std::string& file() const { return file_; }
  const std::string& name() const { return name_; }

 private:
  const toml::node* find(std::string_view key);
  const toml::node& require(std::string_view key, const char* what);
  double checked(const toml::node& node, std::string_view key, double above, double most) const;
  std::int32_t index_of(const toml::node& node, const std::string& expected) const;
  std::string at(const toml::node& node) const;
  [[noreturn]] void fail_at(const toml::node& node, const std::string& message) const;
  Provenance provenance_of(std::string_view key) const;

  const toml::table& table_;
  std::string file_;
  std::string name_;
  std::vector<std::string> known_;
  Provenance default_provenance_ = Provenance::specification;
  std::vector<std::pair<std::string, Provenance>> provenance_;
};

// Parses text; a syntax error is a UsageError with file and line.
toml::table parse_toml(std::string_view text, const std::string& file);

}  // namespace bench::simulator
