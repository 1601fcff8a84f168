// Ranks that a script looks after itself. What every rank downloads, saves or loads is the script's
// own matter only there: a framework that starts the ranks does these things for it.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// The program joins a process group or runs under Horovod, and no framework stands above them.
bool has_ranks_of_its_own(const Program& program);

// A Lightning Trainer starts several processes that all run the script to its end. Lightning saves
// and logs for them; what the script does beside it, each of them does. None does so in a notebook,
// which is no script to start again: "ddp" raises there, and what forks comes back to one process.
bool has_lightning_ranks(const Program& program);

// The same, or a Trainer spawns them, so that they run its steps and hooks and come back to one
// process: strategy="ddp_spawn", and gpus=2 without a strategy in the older versions.
bool runs_steps_in_several(const Program& program);

// The Trainer of this call of fit() does so, whatever an option may say.
bool fits_in_lightning_ranks(const Program& program, const CallRef& fit);

// Hugging Face's Trainer in a script that torchrun or `accelerate launch` starts several times: it
// asks for the number of processes, for its rank or whether it is the first.
bool has_trainer_ranks(const Program& program);

// train_ddp.py, finetune_torchrun.py: a launcher starts the script several times, by its own name.
bool is_named_for_ranks(const Program& program);

}  // namespace bench::pitfalls
