// Methods of a Trainer in which all of its processes take part.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <vector>

namespace bench::pitfalls {

// trainer.evaluate() and its kin, of Hugging Face's Trainer or of a Lightning Trainer that is made
// for several processes.
std::vector<CallRef> trainer_collectives(const Program& program);

// self.all_gather(x) of a Lightning module, trainer.strategy.barrier(), fabric.all_reduce(x).
std::vector<CallRef> lightning_collectives(const Program& program);

// trainer.save_checkpoint(path), which before 2.1 wrote without waiting for the other ranks.
std::vector<CallRef> saves_of_lightning(const Program& program);

}  // namespace bench::pitfalls
