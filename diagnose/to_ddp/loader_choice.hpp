// What loaders serve: those of functions for training and evaluation alike, make("train") and
// make("val"), and those that a loop goes over which does not train.
#pragma once

#include "diagnose/model/program.hpp"

#include <string>
#include <vector>

namespace bench::diagnose {

// Calls that are reached lead to the function around the loader from several places.
bool serves_several(const Program& program, const CallRef& loader);

// train_loader = DataLoader(...), whoever calls the function.
bool is_named_for_training(const Program& program, const CallRef& loader);

// It stands in the branch for training: `if phase == "train": return DataLoader(...)`.
bool is_in_branch_for_training(const Program& program, const CallRef& loader);

// The value of `shuffle`, where it tells the training calls from the others: is_train,
// split == "train", a parameter that all calls write out. Empty where it does not.
Ref choice_of_training(const Program& program, const CallRef& loader);

// `x == 'train'` for {x: DataLoader(data[x]) for x in ["train", "val"]}; empty for what is no such
// loader.
std::string choice_of_item(const Program& program, const CallRef& loader);

// The loaders whose batches an object of the program gives on: for x in self.loader: yield x, in
// its
// __iter__.
std::vector<CallRef> loaders_within(const Program& program, Ref object);

// A loop over a loader that trains nothing: it evaluates, fills a cache or counts.
struct PassOver {
  Ref loop;
  CallRef loader;
};
std::vector<PassOver> passes_without_training(const Program& program);

}  // namespace bench::diagnose
