#include "bench/cli/calibrate_flags.hpp"

#include "bench/cli/write_probe.hpp"
#include "bench/core/error.hpp"
#include "bench/plan/gpu_list.hpp"

namespace bench::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kGroup = "flags";
constexpr Flag kFlags[] = {
    {"--gpus", "LIST", "the GPUs to measure: 0, 0,1,2,3, all or auto:N (default: all)", kGroup,
     "0"},
    {"--out", "FILE", "the machine file to write (default: standard output)", kGroup,
     "machine.toml"},
    {"--force", "", "overwrite files that exist", kGroup, "true"},
    {"--device", "cuda|cpu", "measure GPUs, or this CPU as if it were one (default: cuda)", kGroup,
     "cpu"},
    {"--quick", "", "fewer shapes and repetitions: seconds instead of minutes, coarser curves",
     kGroup, "true"},
    {"--save-samples", "FILE", "keep what was measured, as JSON", kGroup, "samples.json"},
    {"--samples", "FILE", "fit samples that were kept, and measure nothing", kGroup,
     "samples.json"},
    {"--worker", "PROGRAM", "", kGroup, "bench-worker"},
};

bool is_on(const Typed& typed, std::string_view flag) {
  return typed.value(flag).value_or("false") == "true";
}

// A name for a file that may be written: not a directory, and not there unless --force.
fs::path output_of(const Typed& typed, const std::string& flag) {
  const fs::path path = typed.value(flag).value_or("");
  std::error_code error;
  if (path.empty() || !fs::exists(path, error)) return path;
  if (fs::is_directory(path, error)) {
    throw UsageError(flag + ": '" + path.string() + "' is a directory; expected a file");
  }
  if (!is_on(typed, "--force")) {
    throw UsageError(flag + ": '" + path.string() + "' exists; --force overwrites it");
  }
  return path;
}

}  // namespace

std::span<const Flag> calibrate_flags() { return kFlags; }

CalibrateRequest parse_calibrate_request(const Typed& typed) {
  if (!typed.words.empty()) {
    throw UsageError("bench calibrate: unexpected '" + typed.words[0] + "'; expected flags");
  }
  CalibrateRequest request;
  request.device =
      choice(typed, "--device", {"cuda", "cpu"}) == "cpu" ? DeviceKind::cpu : DeviceKind::cuda;
  request.gpus = typed.value("--gpus").value_or("");
  (void)parse_gpu_list(request.gpus);
  request.samples = typed.value("--samples").value_or("");
  for (const char* measuring : {"--gpus", "--device", "--quick", "--save-samples"}) {
    if (request.samples.empty() || !typed.has(measuring)) continue;
    throw UsageError(std::string(measuring) + " measures; it cannot go with --samples");
  }
  request.out = output_of(typed, "--out");
  request.save = output_of(typed, "--save-samples");
  request.worker = typed.value("--worker").value_or("");
  request.quick = is_on(typed, "--quick");
  return request;
}

void require_writable_file(const fs::path& path, const std::string& flag) {
  if (path.empty()) return;
  const std::string reason = why_not_writable(path.string() + probe_name());
  if (!reason.empty()) {
    throw MachineError(flag + ": cannot write '" + path.string() + "': " + reason);
  }
}

}  // namespace bench::cli
