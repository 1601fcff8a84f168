// trainer.run(loader, max_epochs=n) of ignite: an engine goes over the batches and the epochs.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

struct EngineRun {
  CallRef run;
  CallRef loader;
  CallRef sampler;  // its DistributedSampler
  bool evaluates = false;
};

// Those of the program whose loader has a DistributedSampler.
std::vector<EngineRun> engine_runs(const Program& program);

// DDP018: the engine trains over several epochs and nothing tells the sampler which one it is.
void check_epochs_of_engines(const Program& program, Report& report);

}  // namespace bench::pitfalls
