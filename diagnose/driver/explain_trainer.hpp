// `bench diagnose --explain-trainer`: what a Lightning Trainer's arguments mean, by version:
// devices, processes, per-device batch, and the modern spelling of removed arguments.
#pragma once

#include "diagnose/driver/trainer_reading.hpp"
#include "diagnose/model/program.hpp"

#include <string>

namespace bench::diagnose {

std::string explain_trainer(const Program& program);

// One reading as a phrase: "GPUs 0, 1; 2 processes (ddp)".
std::string describe(const TrainerReading& reading);

// How the version reads precision=VALUE, on GPUs or on the CPU.
std::string describe_precision(const Value& value, LightningVersion version, bool on_cpu);

}  // namespace bench::diagnose
