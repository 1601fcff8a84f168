#include "bench/plan/machine_flag.hpp"

#include "bench/core/error.hpp"

namespace bench {

simulator::Machine machine_of_flag(const std::string& value) {
  const bool file = value.ends_with(".toml") || value.find('/') != std::string::npos;
  try {
    return simulator::load_machine(value);
  } catch (const UsageError& error) {
    if (file) throw;
    throw UsageError(std::string("--machine: ") + error.what());
  }
}

}  // namespace bench
