// What this machine's NVIDIA driver says, asked without LibTorch and without creating a CUDA
// context: NVML by dlopen, and the driver library where NVML is missing. Takes milliseconds;
// absence is data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

struct HardwareGpu {
  std::string name;
  std::string uuid;
  std::uint64_t memory_bytes = 0;
  std::uint64_t used_bytes = 0;
  int busy_percent = 0;
};

struct Hardware {
  std::vector<HardwareGpu> gpus;   // in PCI bus order, after CUDA_VISIBLE_DEVICES
  std::string unavailable;         // why there are none; empty when there are
  std::string driver_version;      // "550.54.15"
  std::string cuda_version;        // newest CUDA the driver supports, "12.4"
  std::vector<std::string> notes;  // what could not be asked
};

Hardware query_hardware();

// The GPUs that CUDA shows a process whose CUDA_VISIBLE_DEVICES is `text`: indices or UUID
// prefixes; as in CUDA, the first entry that names no GPU ends the list.
std::vector<HardwareGpu> visible_gpus(const std::vector<HardwareGpu>& all, const std::string& text);

}  // namespace bench
