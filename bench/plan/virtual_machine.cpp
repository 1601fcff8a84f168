#include "bench/plan/devices.hpp"
#include "simulator/machine.hpp"

namespace bench {

VirtualMachine load_virtual_machine(const std::string& name_or_path) {
  const simulator::Machine machine = simulator::load_machine(name_or_path, "--machine");
  return {machine.title, machine.gpu_count(), machine.gpu.memory_bytes()};
}

}  // namespace bench
