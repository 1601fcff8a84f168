// What loaders serve: those of functions for training and evaluation alike, make("train") and
// make("val").
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

// Those that other runs draw from in its place: in the method of the same name of each class that
// is picked where the loader's own is, LOADERS[args.data](args).train_loader().
std::vector<CallRef> loaders_in_place_of(const Program& program, const CallRef& loader);

// The value of `shuffle`, where it tells the training calls from the others: is_train,
// split == "train", a parameter that all calls write out. Empty where it does not.
Ref choice_of_training(const Program& program, const CallRef& loader);

// The same of one that says so in words of its own, whoever calls: not a parameter `shuffle`.
Ref word_of_training(const CallRef& loader);

// `x == 'train'` for a loader that is made for each item: {x: DataLoader(data[x]) for x in
// ["train", "val"]}, a loop over them, `for x, data in sets.items()`; `x is train_set` for x in
// (train_set, val_set). Empty for what is no such loader, and where the items are not in sight.
std::string choice_of_item(const Program& program, const CallRef& loader);

}  // namespace bench::diagnose
