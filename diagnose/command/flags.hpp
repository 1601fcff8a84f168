// The flags of `bench diagnose`: read, checked against each other, and joined with the settings of
// the project.
#pragma once

#include "diagnose/driver/options.hpp"

#include <optional>
#include <string>
#include <vector>

namespace bench::diagnose {

struct Flags {
  DiagnoseOptions options;
  std::string format = "text";
  std::string severity;
  std::string confidence;
  std::vector<std::string> exclude;
  std::optional<std::string> config;
  std::optional<std::string> settings_file;  // that was read
  std::optional<std::string> stdin_filename;
  std::optional<std::string> baseline;
  std::optional<std::string> output_file;
  bool exit_zero = false;
  bool statistics = false;
  bool add_ignores = false;
  bool fix = false;
  bool diff = false;
  bool to_ddp = false;
  bool explain_trainer = false;
  bool cost = false;
  std::string machine;
  double parse_limit_seconds = 5;
};

// Nothing where --help was asked for, which is printed. Throws UsageError.
std::optional<Flags> read_flags(std::vector<std::string> arguments);

}  // namespace bench::diagnose
