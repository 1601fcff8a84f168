// The devices a run may choose from: real GPUs, the virtual GPUs of a machine, or CPU processes;
// and what --gpus makes of them.
#pragma once

#include "bench/core/case.hpp"
#include "bench/plan/hardware.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace bench {

struct Devices {
  DeviceKind kind = DeviceKind::vgpu;
  int count = 0;                          // devices 0 .. count-1 exist
  std::string title;                      // "4 x V100 SXM2", for messages
  std::string machine;                    // vgpu: what load_machine() takes
  std::uint64_t memory_bytes = 0;         // of the smallest GPU; 0: not known
  std::vector<std::uint64_t> used_bytes;  // cuda: memory in use by device, for auto:N
  std::vector<std::string> notes;         // lines the user should see first
};

struct DeviceRequest {
  std::optional<DeviceKind> device;  // --device
  std::string machine;               // --machine
  std::string gpus;                  // --gpus as typed; empty = all
};

// A machine whose GPUs are simulated, as far as a plan needs to know it.
struct VirtualMachine {
  std::string title;
  int gpus = 0;
  std::uint64_t memory_bytes = 0;  // of one GPU
};
// load_machine() of the simulator, behind a seam that tests fill by hand.
using MachineLoader = std::function<VirtualMachine(const std::string& name_or_path)>;
VirtualMachine load_virtual_machine(const std::string& name_or_path);

// The machine that is meant where none is named, with at least that many GPUs.
std::string default_machine(int gpus);

// Chooses between real and virtual devices (INTERFACE, --machine). Throws MachineError when the
// devices asked for are not there, UsageError when the flags contradict each other.
Devices resolve_devices(const DeviceRequest& request, const Hardware& hardware,
                        const MachineLoader& load = load_virtual_machine);

// "0,1,3", "all", "-1" or "auto:N" as device indices. Throws UsageError on malformed text and
// duplicates, MachineError for devices that do not exist. May add a note to `devices`.
std::vector<int> select_gpus(const std::string& text, Devices& devices);

}  // namespace bench
