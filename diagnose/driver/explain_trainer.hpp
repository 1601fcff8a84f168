// `bench diagnose --explain-trainer`: what a Lightning Trainer's arguments mean, by version:
// devices, processes, per-device batch, and the modern spelling of removed arguments.
#pragma once

#include "diagnose/model/program.hpp"

#include <optional>
#include <string>
#include <vector>

namespace bench::diagnose {

// How one version reads a devices value, given the number of visible GPUs (empty: not known).
struct DeviceReading {
  enum class Kind : std::uint8_t { cpu, gpus, all, error } kind = Kind::cpu;
  std::vector<int> ids;  // after CUDA_VISIBLE_DEVICES
  std::string note;
};

enum class LightningVersion : std::uint8_t { up_to_1_4, from_1_5, from_2_0 };

DeviceReading read_devices(const Value& value, LightningVersion version);

std::string explain_trainer(const Program& program);

}  // namespace bench::diagnose
