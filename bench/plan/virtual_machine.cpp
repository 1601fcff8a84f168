#include "bench/plan/devices.hpp"
#include "bench/plan/machine_flag.hpp"

#include <algorithm>

namespace bench {

VirtualMachine load_virtual_machine(const std::string& name_or_path) {
  const simulator::Machine machine = machine_of_flag(name_or_path);
  std::uint64_t memory = machine.gpu.memory_bytes();
  for (const simulator::Machine& group : machine.groups) {
    memory = std::min(memory, group.gpu.memory_bytes());
  }
  return {machine.title, machine.gpu_count(), memory};
}

}  // namespace bench
