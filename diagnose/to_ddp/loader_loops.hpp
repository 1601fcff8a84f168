// What goes over the batches of loaders, beside the loops that are known to train.
#pragma once

#include "diagnose/model/program.hpp"

#include <set>
#include <vector>

namespace bench::diagnose {

// The loaders whose batches an object of the program gives on: for x in self.loader: yield x, in
// its __iter__.
std::vector<CallRef> loaders_within(const Program& program, Ref object);

// A loop or a comprehension over a loader.
struct PassOver {
  Ref loop;
  CallRef loader;
};

// Those that train nothing: they evaluate, fill a cache or count. A loop that gives its batches to
// something out of sight that trains by its name, engine.step(x, y), is none of them.
std::vector<PassOver> passes_without_training(const Program& program);

// engine.step(x, y) and fit_batch(model, x) of what is not there: the loop trains by what is out of
// sight, by the name of it.
bool hands_to_training(const Program& program, Ref loop);

// The loaders of these passes.
std::set<Ref> drawn_without_training(const Program& program);

// Of those that surely train nothing. Where no loop is known to train, one of the others may do so
// by what is out of sight.
std::set<Ref> drawn_without_gradients(const Program& program);

}  // namespace bench::diagnose
