// What was typed, before anybody asks what it means: flags with their text, other words, and what
// followed "--". Knows only the table it is given; does no I/O.
#pragma once

#include "bench/cli/subcommands.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bench::cli {

// One row of a command's flags; help and documentation are made from it.
struct Flag {
  std::string_view name;         // "--gpus"
  std::string_view placeholder;  // "LIST"; empty = a switch
  std::string_view help;         // one sentence; empty = not shown
  std::string_view group;        // heading in the help
  std::string_view example;      // a value that the tests try
};

struct TypedFlag {
  std::string name;   // of the row, also for "--no-..." of a switch
  std::string value;  // "true" or "false" (or "true,false") for switches
};

struct Typed {
  std::vector<TypedFlag> flags;     // in the order they were typed
  std::vector<std::string> words;   // neither flags nor their values
  std::vector<std::string> rest;    // after "--"
  std::vector<std::string> passed;  // flags that start with `pass_prefix`, untouched

  // The last value typed for the flag.
  std::optional<std::string> value(std::string_view name) const;
  bool has(std::string_view name) const { return value(name).has_value(); }
};

// Throws UsageError: an unknown flag lists the nearest ones, a missing value says what is expected.
// Accepts "--flag value", "--flag=value", and for switches "--flag", "--no-flag", "--flag=false".
// `command` is how messages name the command.
Typed parse_flags(const Arguments& arguments, std::span<const Flag> flags, std::string_view command,
                  std::string_view pass_prefix = {});

// The flag's value, which must be one of `known`; the first of them when it was not typed. Throws
// UsageError.
std::string choice(const Typed& typed, std::string_view flag, std::vector<std::string> known);

}  // namespace bench::cli
