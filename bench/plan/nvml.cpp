#include "bench/plan/nvml.hpp"

#include "bench/plan/dynamic_library.hpp"

namespace bench {
namespace {

// nvml.h: nvmlReturn_t, nvmlDevice_t, nvmlMemory_t, nvmlUtilization_t.
using Status = int;
using Device = struct DeviceHandle*;
struct Memory {
  unsigned long long total, free, used;
};
struct Utilization {
  unsigned int gpu, memory;
};
constexpr Status kSuccess = 0;
constexpr unsigned kTextBytes = 96;  // NVML_DEVICE_UUID_V2_BUFFER_SIZE, the longest of the three

struct Functions {
  Status (*init)() = nullptr;
  Status (*shutdown)() = nullptr;
  const char* (*error_text)(Status) = nullptr;
  Status (*driver_version)(char*, unsigned) = nullptr;
  Status (*cuda_version)(int*) = nullptr;
  Status (*count)(unsigned*) = nullptr;
  Status (*handle)(unsigned, Device*) = nullptr;
  Status (*name)(Device, char*, unsigned) = nullptr;
  Status (*uuid)(Device, char*, unsigned) = nullptr;
  Status (*memory)(Device, Memory*) = nullptr;
  Status (*utilization)(Device, Utilization*) = nullptr;
};

bool resolve(const DynamicLibrary& library, Functions& f) {
  const bool required = library.find("nvmlInit_v2", f.init) &&
                        library.find("nvmlShutdown", f.shutdown) &&
                        library.find("nvmlErrorString", f.error_text) &&
                        library.find("nvmlDeviceGetCount_v2", f.count) &&
                        library.find("nvmlDeviceGetHandleByIndex_v2", f.handle);
  library.find("nvmlSystemGetDriverVersion", f.driver_version);
  library.find("nvmlSystemGetCudaDriverVersion_v2", f.cuda_version);
  library.find("nvmlDeviceGetName", f.name);
  library.find("nvmlDeviceGetUUID", f.uuid);
  library.find("nvmlDeviceGetMemoryInfo", f.memory);
  library.find("nvmlDeviceGetUtilizationRates", f.utilization);
  return required;
}

HardwareGpu describe(const Functions& f, Device device) {
  HardwareGpu gpu;
  char text[kTextBytes] = {};
  if (f.name && f.name(device, text, kTextBytes) == kSuccess) gpu.name = text;
  if (f.uuid && f.uuid(device, text, kTextBytes) == kSuccess) gpu.uuid = text;
  Memory memory{};
  if (f.memory && f.memory(device, &memory) == kSuccess) {
    gpu.memory_bytes = memory.total;
    gpu.used_bytes = memory.used;
  }
  Utilization utilization{};
  if (f.utilization && f.utilization(device, &utilization) == kSuccess) {
    gpu.busy_percent = static_cast<int>(utilization.gpu);
  }
  return gpu;
}

void read_versions(const Functions& f, Hardware& hardware) {
  char text[kTextBytes] = {};
  if (f.driver_version && f.driver_version(text, kTextBytes) == kSuccess) {
    hardware.driver_version = text;
  }
  int version = 0;
  if (f.cuda_version && f.cuda_version(&version) == kSuccess) {
    // 12040 is CUDA 12.4.
    hardware.cuda_version =
        std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  }
}

void read_gpus(const Functions& f, Hardware& hardware) {
  unsigned count = 0;
  const Status counted = f.count(&count);
  if (counted != kSuccess) hardware.unavailable = std::string("NVML: ") + f.error_text(counted);
  for (unsigned index = 0; index < count; ++index) {
    Device device = nullptr;
    const Status found = f.handle(index, &device);
    if (found == kSuccess) {
      hardware.gpus.push_back(describe(f, device));
    } else {
      // An index of its own even if it is lost, so that the indices of the others stay right.
      hardware.gpus.push_back({"GPU that NVML cannot open", "", 0, 0, 0});
      hardware.notes.push_back("GPU " + std::to_string(index) + ": " + f.error_text(found));
    }
  }
}

}  // namespace

Hardware query_nvml() {
  Hardware hardware;
  const DynamicLibrary library("libnvidia-ml.so.1");
  if (!library.loaded()) {
    hardware.unavailable = "no NVIDIA driver is installed (no libnvidia-ml.so.1)";
    return hardware;
  }
  Functions f;
  if (!resolve(library, f)) {
    hardware.unavailable = "libnvidia-ml.so.1 lacks functions of NVML";
    return hardware;
  }
  if (const Status started = f.init(); started != kSuccess) {
    hardware.unavailable = std::string("NVML: ") + f.error_text(started);
    return hardware;
  }
  read_versions(f, hardware);
  read_gpus(f, hardware);
  f.shutdown();
  if (hardware.gpus.empty() && hardware.unavailable.empty()) {
    hardware.unavailable = "the NVIDIA driver sees no GPU";
  }
  return hardware;
}

}  // namespace bench
