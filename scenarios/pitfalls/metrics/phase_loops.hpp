// One loop for several phases: for phase in ["train", "val"]: for batch in loaders[phase].
#pragma once

#include "scenarios/pitfalls/rule.hpp"

#include <functional>

namespace bench::pitfalls {

// if phase == "train": loss.backward(), here or in a function that the loop calls: in the loop over
// loaders[phase] the other phases evaluate.
bool trains_in_one_phase(const Program& program, Ref loop);

// loss.backward(); optimizer.step() in the loop, as where latent codes are fitted to test samples:
// it trains, whatever its loader is called. Functions that it calls may do so for it.
bool trains_in_loop(const Program& program, Ref loop);

// run_epoch(model, val_loader, train=False) of a function that trains in one phase alone, with what
// is called a loader for evaluation and accepted as one.
bool is_run_for_evaluation(const Program& program, Ref loop,
                           const std::function<bool(Ref batches)>& accepts);

// The same, where what the call passes comes from that loader, with its sampler.
bool is_run_over_shard(const Program& program, Ref loop, const CallRef& loader);

// The same as the first, where the phases are written out and one is called "val", "test" or the
// like, and the loader is made in the same way for each of them.
bool evaluates_in_one_phase(const Program& program, Ref loop, const CallRef& loader);

}  // namespace bench::pitfalls
