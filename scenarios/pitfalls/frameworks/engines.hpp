// Models that ranks train together without DDP's wrapper: DeepSpeed's engine, and what FSDP shards.
// Data, devices and files are the script's own affair there as they are under DDP; gradients,
// accumulation and clipping are the engine's.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <string>
#include <vector>

namespace bench::pitfalls {

// engine of `engine, optimizer, loader, schedule = deepspeed.initialize(...)`.
bool is_engine(const Program& program, Ref object);

// FSDP(net), and net below fully_shard(net). Empty sources are none.
bool is_sharded(const Program& program, Ref model);

// The same, also where the model is sharded by some runs only, and this may be one of them.
bool may_be_sharded(const Program& program, Ref model);

// No FSDP, or with NO_SHARD, which leaves every rank with all parameters as DDP does; beside the
// names of the other strategies it is one of several that an option may choose.
bool shards_nothing(const Program& program);

// The program makes one of them itself, and no framework above it deals out the data.
bool trains_by_engine(const Program& program);

// Calls that make one: deepspeed.initialize(...), FSDP(...), fully_shard(...).
std::vector<CallRef> engines_made(const Program& program);

// The model that such a call is given.
Ref model_given(const CallRef& engine);

// What every rank must call together, with the words that name it.
struct EngineMeeting {
  CallRef call;
  std::string what;
};
std::vector<EngineMeeting> meetings_of_engines(const Program& program);

}  // namespace bench::pitfalls
