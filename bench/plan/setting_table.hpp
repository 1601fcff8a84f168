// The table of everything a scenario file can say. One row is the key in the file, the flag that
// overwrites it, the help of both and an example that the tests try in both places.
#pragma once

#include "bench/plan/settings.hpp"

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace bench {

enum class ValueType { word, integer, number, boolean };
const char* value_type_name(ValueType type);  // "a whole number"

using Value = std::variant<std::string, std::int64_t, double, bool>;  // in the order of ValueType

// A value of the right type that means nothing; the reader of the file or flag says where it stood.
class BadValue : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Setting {
  std::string_view section;  // table of the scenario file
  std::string_view key;
  std::string_view flag;         // "--batch"; empty = scenario file only
  std::string_view placeholder;  // "N,..." ; empty = a switch (boolean)
  ValueType type;
  bool list;                 // takes several values
  std::string_view example;  // as typed after the flag
  std::string_view help;
  void (*apply)(Settings& settings, const std::vector<Value>& values);  // may throw BadValue
};

std::span<const Setting> setting_table();
const Setting* find_setting(std::string_view section, std::string_view key);
const Setting* find_setting_by_flag(std::string_view flag);

// Splits "a,b,c" and converts each part; throws BadValue naming the part that does not fit.
std::vector<Value> values_from_text(const Setting& setting, std::string_view text);

}  // namespace bench
