// Collectives that do not look like one, and that some ranks come to alone.
#pragma once

#include "scenarios/pitfalls/rule.hpp"

namespace bench::pitfalls {

// model.state_dict() of a model that FSDP shards, and its kin: every rank sends its shards.
std::vector<CallRef> gathers_of_shards(const Program& program);

// model.module.state_dict() of such a model: the hooks that gather the shards are passed by.
std::vector<CallRef> states_below_shards(const Program& program);

// synchronize() of a project's file about communication, as detectron2 has it: a barrier.
std::vector<CallRef> barriers_by_name(const Program& program);

// iter(loader) after loader = accelerator.prepare(loader), where DataLoader(..., shuffle=True) was
// prepared: with each pass the ranks are told the state of the first one's generator.
std::vector<CallRef> reads_of_shuffled_loaders(const Program& program);

// The items of `with accelerator.main_process_first():` around training: the main process reduces
// gradients while the others wait at the entrance.
std::vector<Ref> turns_around_training(const Program& program);

// The tested name is a function that the file imports and does not call: `if is_main_process:` is
// true on every rank.
bool is_uncalled_test(const Program& program, Ref condition);

// train_one_epoch(...) and trainer.train(epoch) in a loop, of files that are not there.
std::vector<CallRef> training_out_of_sight(const Program& program);

}  // namespace bench::pitfalls
