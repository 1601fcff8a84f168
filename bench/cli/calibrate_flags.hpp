// The flags of `bench calibrate` and what they mean together.
#pragma once

#include "bench/cli/flag_parser.hpp"
#include "bench/core/case.hpp"

#include <filesystem>
#include <span>
#include <string>

namespace bench::cli {

std::span<const Flag> calibrate_flags();

struct CalibrateRequest {
  DeviceKind device = DeviceKind::cuda;
  std::string gpus;               // as typed
  std::filesystem::path out;      // empty: standard output
  std::filesystem::path save;     // empty: samples are not kept
  std::filesystem::path samples;  // fit these instead of measuring
  std::string worker;
  bool quick = false;
};

// Throws UsageError naming the flag; files in the way are told from those that may be written.
CalibrateRequest parse_calibrate_request(const Typed& typed);

// Asks by doing whether a file of that name can be written, so that minutes of measuring do not end
// in "permission denied". Throws MachineError.
void require_writable_file(const std::filesystem::path& path, const std::string& flag);

}  // namespace bench::cli
