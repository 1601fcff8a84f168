#include "bench/plan/devices.hpp"

#include "bench/core/error.hpp"
#include "bench/plan/gpu_list.hpp"

#include <algorithm>

namespace bench {
namespace {

// The default machines, smallest first: V100s with NVLink are the GPUs of most published DP and DDP
// measurements, so simulated figures can be held against them. More than eight need several nodes.
constexpr int kDefaultGpus = 4;
constexpr int kGpusOfOneNode = 8;
constexpr int kDefaultGpusMax = 128;  // beyond, somebody mistyped an index or has a machine in mind

Devices cuda_devices(const Hardware& hardware) {
  Devices devices;
  devices.kind = DeviceKind::cuda;
  devices.count = static_cast<int>(hardware.gpus.size());
  devices.title = std::to_string(devices.count) + " x " + hardware.gpus[0].name;
  devices.memory_bytes = hardware.gpus[0].memory_bytes;
  for (const HardwareGpu& gpu : hardware.gpus) {
    devices.used_bytes.push_back(gpu.used_bytes);
    devices.memory_bytes = std::min(devices.memory_bytes, gpu.memory_bytes);
  }
  return devices;
}

Devices virtual_devices(const std::string& machine, const MachineLoader& load) {
  const VirtualMachine loaded = load(machine);
  Devices devices;
  devices.kind = DeviceKind::vgpu;
  devices.machine = machine;
  devices.count = loaded.gpus;
  devices.title = loaded.title;
  devices.memory_bytes = loaded.memory_bytes;
  return devices;
}

// Processes of this machine; there is no limit but sense.
Devices cpu_devices() {
  constexpr int kProcesses = 64;
  Devices devices;
  devices.kind = DeviceKind::cpu;
  devices.count = kProcesses;
  devices.title = "this CPU";
  return devices;
}

// On the user's word or by default, no GPU here: which virtual ones stand in for them.
Devices default_devices(const DeviceRequest& request, const Hardware& hardware,
                        const MachineLoader& load) {
  const int needed = gpus_needed(parse_gpu_list(request.gpus));
  if (needed > kDefaultGpusMax) {
    throw MachineError("--gpus: default machines have at most " + std::to_string(kDefaultGpusMax) +
                       " GPUs; name a larger one with --machine");
  }
  Devices devices = virtual_devices(default_machine(needed), load);
  const std::string why =
      hardware.gpus.empty() ? hardware.unavailable : "--device vgpu was asked for";
  devices.notes.push_back("simulated on the default machine " + devices.machine + ": " + why +
                          "; --machine chooses another");
  return devices;
}

}  // namespace

std::string default_machine(int gpus) {
  if (gpus <= kGpusOfOneNode) return std::to_string(std::max(gpus, kDefaultGpus)) + "xv100-sxm2";
  return std::to_string((gpus + kGpusOfOneNode - 1) / kGpusOfOneNode) + "xdgx-1-v100";
}

Devices resolve_devices(const DeviceRequest& request, const Hardware& hardware,
                        const MachineLoader& load) {
  const bool has_machine = !request.machine.empty();
  const DeviceKind kind = request.device                         ? *request.device
                          : has_machine || hardware.gpus.empty() ? DeviceKind::vgpu
                                                                 : DeviceKind::cuda;
  if (has_machine && kind != DeviceKind::vgpu) {
    throw UsageError(std::string("--machine describes virtual GPUs; it cannot go with --device ") +
                     device_kind_name(kind));
  }
  switch (kind) {
    case DeviceKind::cpu:
      return cpu_devices();
    case DeviceKind::cuda:
      if (hardware.gpus.empty()) {
        throw MachineError("--device cuda: " + hardware.unavailable +
                           "; leave it out to simulate GPUs, see bench doctor");
      }
      return cuda_devices(hardware);
    case DeviceKind::vgpu:
      break;
  }
  if (!has_machine) return default_devices(request, hardware, load);
  return virtual_devices(request.machine, load);
}

}  // namespace bench
