// How Lightning reads the device arguments of a Trainer, version by version: on which devices it
// trains, in how many processes, or which exception it raises. Written from the sources of 1.0.8,
// 1.4.9, 1.5.10, 1.6.5, 1.7.7, 1.9.5, 2.0.9 and 2.5.5.
#pragma once

#include "diagnose/driver/trainer_devices.hpp"
#include "scenarios/pitfalls/frameworks/trainer.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bench::diagnose {

struct TrainerMachine {
  std::optional<std::int64_t> visible_gpus;  // empty: not known, and taken to be enough
  bool interactive = false;                  // a notebook
};

struct TrainerReading {
  enum class Where : std::uint8_t { cpu, gpus, all_gpus, free_gpus, other };
  std::string error;  // what building the Trainer raises; the rest is empty then
  Where where = Where::cpu;
  std::vector<int> ids;                   // for Where::gpus, after CUDA_VISIBLE_DEVICES
  std::optional<std::int64_t> devices;    // of one node; empty: as many as are visible
  std::string strategy;                   // empty: a single device
  std::optional<std::int64_t> processes;  // of the whole job; empty: one for each device
  std::int64_t nodes = 1;

  // dp and ddp2 split the batch of a loader over the devices of a process.
  bool splits_batch() const { return strategy == "dp" || strategy == "ddp2"; }
};

TrainerReading read_trainer(const pitfalls::trainer::Use& use, LightningVersion version,
                            const TrainerMachine& machine);

}  // namespace bench::diagnose
