// A literal value, as far as the text of a program or a config file decides it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bench::diagnose {

struct Value {
  enum class Type : std::uint8_t { unknown, none, boolean, integer, number, string, list };
  Type type = Type::unknown;
  std::int64_t integer = 0;
  double number = 0;
  std::string string;
  std::vector<Value> items;
  bool is_default = false;  // comes from an argparse default, so the command line may change it

  bool known() const { return type != Type::unknown; }
  bool is_true() const { return type == Type::boolean && integer != 0; }
  bool is_false() const { return type == Type::boolean && integer == 0; }
  bool is_integer() const { return type == Type::integer; }
  bool is_string() const { return type == Type::string; }
};

}  // namespace bench::diagnose
