// Where the batches of training come from in the rewritten program, and whether ranks share them.
#pragma once

#include "diagnose/to_ddp/remaining/topics.hpp"

#include <vector>

namespace bench::diagnose {

enum class Share : std::uint8_t {
  shared,        // a DistributedSampler
  optional,      // one that an option takes, which is off unless it is given
  whole,         // a loader without one
  own_sampler,   // a sampler of another kind
  own_batches,   // a batch sampler of another kind
  some_sampler,  // a sampler of another kind in some runs, none in others
  subset,        // a sampler over a list of indices
  own_loader,    // a class of the program that is a DataLoader and gives itself a sampler
  unseen,        // a loader whose arguments cannot be seen
  stream,        // an IterableDataset
  foreign,       // an iterator of another library, which takes no sampler
  own_class,     // no DataLoader, but a class of the program
  episodes,      // the same of one that draws tasks of a few classes
  elsewhere,     // made out of sight
  drawn,         // no batches that a loader gives: for step in range(n): x = draw()
};

struct Supply {
  Share share = Share::elsewhere;
  Ref place;
  Ref option = {};
};

// What makes the batches is not known.
bool is_unfollowed(const Supply& supply);

// The loops that every rank trains in.
std::vector<const TrainingLoop*> trainings(const Left& left);

// The loaders behind a loop; those of zip(first, second) too, and the one whose batches the loop
// takes apart.
std::vector<CallRef> loaders_behind(const Program& program, Ref iterable);

std::vector<Supply> supplies_of(const Left& left, const TrainingLoop& loop);

// The sampler that a step has given the loader; one of the author's may be for another mode.
CallRef new_sampler(const Program& program, const CallRef& loader);

// Where some training loop is not seen, or its batches could not be followed to what makes them:
// the loaders that it may draw from, which are neither of evaluation nor of another loop.
std::vector<Supply> unfollowed_supplies(const Left& left);

}  // namespace bench::diagnose
