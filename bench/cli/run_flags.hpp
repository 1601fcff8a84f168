// The flags of `bench --scenario ...`: those of this command, and one for each setting of a
// scenario (bench/plan/setting_table.cpp), so that whatever a file says can be overwritten by a
// flag.
#pragma once

#include "bench/cli/flag_parser.hpp"
#include "bench/plan/devices.hpp"
#include "bench/plan/settings.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace bench::cli {

// All rows, in the order of the help.
const std::vector<Flag>& run_flags();

// What the flags mean for the run itself, checked for form only: nothing is looked up or opened.
struct RunFlags {
  std::string scenario;
  DeviceRequest devices;
  std::string out;
  std::string resume;
  std::string worker;
  bool dry_run = false;
  std::vector<std::string> select;  // pitfalls of the laboratory, ids or names
  std::optional<double> measured_single_ms;
  std::chrono::milliseconds case_time_out{600'000};
  std::vector<TypedFlag> settings;  // overwrite the scenario's, in order
  std::vector<std::string> benchmark_flags;
};

// Throws UsageError naming the flag.
RunFlags parse_run_flags(const Arguments& arguments);

// The command of an earlier run without its --out, overwritten by the flags typed now.
Arguments merged_arguments(const Arguments& earlier, const Arguments& now);

// Lets the flags overwrite what the scenario said; throws UsageError naming the flag.
void apply_settings(const std::vector<TypedFlag>& flags, Settings& settings);

}  // namespace bench::cli
