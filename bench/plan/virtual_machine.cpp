#include "bench/plan/devices.hpp"
#include "bench/plan/machine_flag.hpp"

namespace bench {

VirtualMachine load_virtual_machine(const std::string& name_or_path) {
  const simulator::Machine machine = machine_of_flag(name_or_path);
  return {machine.title, machine.gpu_count(), machine.gpu.memory_bytes()};
}

}  // namespace bench
